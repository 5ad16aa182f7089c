// Uses the client that openapi-generator made for Go.
package main

import (
	"context"
	"log"
	"os"

	store "openapi"
)

func main() {
	server, token, generated := os.Args[1], os.Args[2], os.Args[3]
	configuration := store.NewConfiguration()
	if url := configuration.Servers[0].URL; url != generated {
		log.Fatal(url)
	}
	configuration.Servers[0].URL = server
	pets := store.NewAPIClient(configuration).PetsAPI
	ctx := context.WithValue(context.Background(), store.ContextAccessToken, token)

	const category = 9223372036854775807
	add := *store.NewPetToAdd(category, "Rex")
	created, response, err := pets.CreatePet(ctx).PetToAdd(add).IdempotencyKey("go").Execute()
	if err != nil || created.CategoryId != category || response.Header.Get("Location") == "" {
		log.Fatal(created, response, err)
	}
	list, _, err := pets.ListPets(ctx).Limit(100).Execute()
	if err != nil || len(list) == 0 {
		log.Fatal(list, err)
	}
	_, response, err = pets.GetPet(ctx, category).Execute()
	if err == nil || response.StatusCode != 404 {
		log.Fatal(response, err)
	}
}
