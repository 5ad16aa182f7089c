//! An API key that is revoked while a request arrives.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use animal_store_app::{
    ports::{MockApiKeyDirectory, MockPetRepository},
    test_support::api_key,
};

use crate::service::Service;

#[test]
fn a_key_that_is_revoked_between_the_head_and_the_body_is_a_401() {
    let is_revoked = Arc::new(AtomicBool::new(false));
    let observed = Arc::clone(&is_revoked);
    let mut directory = MockApiKeyDirectory::new();
    directory.expect_find().returning(move |_| {
        let is_known = !observed.load(Ordering::SeqCst);
        Ok(is_known.then(|| Arc::new(api_key("key"))))
    });
    let service = Service::start(MockPetRepository::new(), directory);
    let body = r#"{"name":"Rex","categoryId":1}"#;
    let mut connection = service.request("POST", "").begin_json(body.len());
    connection.response().assert_status(100);

    is_revoked.store(true, Ordering::SeqCst);
    connection.send(body);

    connection.response().assert_error(401, "invalid_api_key");
}
