//! A process that is killed at any moment.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::Stdio,
};

use animal_store_app::{
    ApiKeyId, IdempotencyKey,
    ports::{AddPet, AddedPet, PetRepository},
    test_support::{join_tasks, pet_named},
};
use tempfile::TempDir;

use crate::{
    child,
    store::{Store, settings},
};

fn request(name: &str) -> AddPet {
    let idempotency_key = Some(IdempotencyKey::new(ApiKeyId::new("shop"), name));
    AddPet { pet: pet_named(name), idempotency_key }
}

/// Adds pets and prints each confirmed one.
pub(crate) fn add_until_killed(path: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store = Store::on(path, settings());
        let first = store.count().await;
        join_tasks((0..16).map(|task| {
            let repository = store.repository.clone();
            async move {
                for number in 0.. {
                    let name = format!("{first}-{task}-{number}");
                    let added = repository.add(request(&name)).await.expect("added");
                    writeln!(io::stdout(), "confirmed {name} {}", added.pet.id().get()).expect("written");
                }
            }
        }))
        .await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_and_each_key_has_one_pet() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("pets.db");
    let mut confirmed = BTreeMap::new();
    // The first process is killed while it starts, the others after a number of confirmed pets.
    for round in 0..8 {
        let mut child = child::command(&[], "adds", &path).stdout(Stdio::piped()).spawn().expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut left = 30 * round;
        if left == 0 {
            child.kill().expect("killed");
        }
        for line in lines.map_while(Result::ok) {
            // The last line may be incomplete.
            if let Some((name, id)) = line.strip_prefix("confirmed ").and_then(|line| line.split_once(' ')) {
                confirmed.insert(name.to_owned(), id.to_owned());
                left -= 1;
                if left == 0 {
                    child.kill().expect("killed");
                }
            }
        }
        child.wait().expect("ended");
    }
    assert!(confirmed.len() > 100, "{}", confirmed.len());
    let store = Store::at(folder, settings());
    let pets = store.repository.list(None, None, usize::MAX).await.expect("listed");
    let stored: BTreeMap<_, _> =
        pets.iter().map(|pet| (pet.new_pet().name().as_str().to_owned(), pet.id().get())).collect();
    assert_eq!(stored.len(), pets.len(), "one pet per key");
    for (name, id) in &confirmed {
        let stored = stored.get(name).unwrap_or_else(|| panic!("{name} is lost"));
        assert!(stored.to_string().starts_with(id), "{name}: {stored}, {id}");
    }
    // Not only confirmed pets have their key.
    for (name, id) in &stored {
        let AddedPet { pet, replayed } = store.repository.add(request(name)).await.expect("added");
        assert!(replayed && pet.id().get() == *id, "{name}");
    }
}
