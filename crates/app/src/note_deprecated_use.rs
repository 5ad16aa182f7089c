use std::sync::Arc;

use crate::{
    ApiKey,
    ports::{ApiKeyUse, ApiKeyUses},
};

/// Notes that an API key used `getPet`, so that an operator can find the clients that still have to change.
#[derive(Clone)]
pub struct NoteDeprecatedUse {
    uses: Arc<dyn ApiKeyUses>,
}

impl NoteDeprecatedUse {
    /// Creates the use case over a record of uses.
    pub fn new(uses: Arc<dyn ApiKeyUses>) -> Self {
        Self { uses }
    }

    /// Notes the use. It counts whatever the response is: a client that gets an error has to change as well.
    pub fn execute(&self, key: &ApiKey) {
        self.uses.note(&key.id, ApiKeyUse::GetPet);
    }
}

#[cfg(test)]
mod tests {
    use mockall::predicate::eq;

    use super::*;
    use crate::{ports::MockApiKeyUses, test_support::api_key};

    #[test]
    fn a_use_of_getpet_is_noted_for_its_key() {
        let key = api_key("key");
        let mut uses = MockApiKeyUses::new();
        uses.expect_note().once().with(eq(key.id.clone()), eq(ApiKeyUse::GetPet)).return_const(());
        NoteDeprecatedUse::new(Arc::new(uses)).execute(&key);
    }
}
