"""Creates, lists and gets pets with the client that openapi-python-client generated."""

import re
import sys
from http import HTTPStatus

from animal_store_client import AuthenticatedClient
from animal_store_client.api.pets import create_pet, get_pet, list_pets
from animal_store_client.models import Error, NewPet, Pet, PetStatus

base_url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=token)

created = []
for number in range(5):
    new = NewPet(name=f"Rex {number} 🐈", category_id=number, status=PetStatus.SOLD)
    response = create_pet.sync_detailed(client=client, body=new, idempotency_key=f"{base_url}-{number}")
    assert response.status_code == HTTPStatus.CREATED and isinstance(response.parsed, Pet), response
    replay = create_pet.sync_detailed(client=client, body=new, idempotency_key=f"{base_url}-{number}")
    assert replay.headers["Idempotency-Replayed"] == "true" and replay.parsed == response.parsed, replay
    created.append(response.parsed)

listed, cursor = [], {}
while True:
    page = list_pets.sync_detailed(client=client, limit=2, status=PetStatus.SOLD, **cursor)
    assert page.status_code == HTTPStatus.OK and len(page.parsed) <= 2, page
    listed += page.parsed
    following = re.search("cursor=([^&>]+)", page.headers.get("Link", ""))
    if not following:
        break
    cursor = {"cursor": following[1]}
assert [pet for pet in listed if pet in created] == created, listed

found = get_pet.sync_detailed(client=client, pet_id=created[0].id)
assert found.parsed == created[0] and "Sunset" in found.headers, found
# Prism reads numbers as JavaScript does.
missing = get_pet.sync_detailed(client=client, pet_id=2**53 - 1)
assert isinstance(missing.parsed, Error) and missing.parsed.code == "pet_not_found", missing
