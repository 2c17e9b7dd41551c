"""Jobs: load, build, publish. One job a file, plain functions of their tools: whether a queue, a loop or a test
calls them is not their business.
"""
