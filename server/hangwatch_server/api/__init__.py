"""The REST API (`/api/v1`) and its neighbours at the root: one module per resource.

Handlers parse, call one function of watch, captures or db, and render. They never compute.
"""
