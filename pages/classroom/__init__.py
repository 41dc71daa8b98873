"""The live demo in front of a class, over HTTP: pages for phones, projector and console, votes, the feed and the runs on show.

Owns what a class needs beside Streamlit. How a class stands and what each may see of it belongs to `lessons.classroom`.
"""
