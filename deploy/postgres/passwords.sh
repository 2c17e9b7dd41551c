#!/bin/sh
# Run once, by PostgreSQL's own image, when the cluster is made: gives the roles of 1-roles.sql their passwords.
set -eu
psql --set=ON_ERROR_STOP=1 --quiet --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --file=/run/secrets/passwords.sql
