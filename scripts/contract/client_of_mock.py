"""Reads what Prism makes of the examples in the document: the client is the one that openapi-python-client generated."""

import sys
from http import HTTPStatus

from animal_store_client import AuthenticatedClient
from animal_store_client.api.pets import create_pet, get_pet, list_pets
from animal_store_client.models import NewPet, Pet

base_url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=token, headers={"Accept-Encoding": "gzip"})

listed = list_pets.sync_detailed(client=client, limit=2)
assert listed.status_code == HTTPStatus.OK and isinstance(listed.parsed[0], Pet), listed
assert listed.headers["Link"].endswith('rel="next"'), listed.headers
created = create_pet.sync_detailed(client=client, body=NewPet(name="Rex", category_id=1))
assert created.status_code == HTTPStatus.CREATED and isinstance(created.parsed, Pet), created
assert created.headers["Location"] == f"pets/{created.parsed.id}", created.headers
found = get_pet.sync_detailed(client=client, pet_id=7)
assert found.status_code == HTTPStatus.OK and found.parsed == created.parsed, found
