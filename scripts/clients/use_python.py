"""Uses the client that openapi-generator made for Python."""

import sys

from openapi_client import ApiClient, Configuration, NewPet, PetsApi
from openapi_client.exceptions import NotFoundException

server, token, generated_host = sys.argv[1:]
assert Configuration().host == generated_host, Configuration().host
pets = PetsApi(ApiClient(Configuration(host=server, access_token=token)))

new = NewPet(name="Rex 🐈", category_id=2**63 - 1)
created = pets.create_pet_with_http_info(new, idempotency_key="python")
assert created.data.category_id == new.category_id, created.data
# The names of fields arrive in lower case, and are keys of a dict.
assert created.headers["location"].endswith(f"pets/{created.data.id}") and "Location" not in created.headers
assert pets.create_pet(new, idempotency_key="python") == created.data
assert created.data in pets.list_pets(limit=100)
try:
    pets.get_pet(2**63 - 1)
    raise AssertionError("no such pet exists")
except NotFoundException as error:
    assert error.data.code == "pet_not_found", error
