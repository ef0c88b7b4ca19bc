"""The console: where owners make keys, watch money and see what came in.

``routes`` says what is where; ``door`` lets people in, and keeps keys and other sites' forms out;
``console_request`` has what a page works with. Each page calls operations of the session audience.
"""
