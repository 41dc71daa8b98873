"""The audience's page: for phones, without a Streamlit session. Files for the browser, and `source.py`, which makes a page of them."""
