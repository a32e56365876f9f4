"""What the tests of token logs ask of pytest."""


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: starts an engine, which takes tens of seconds")
