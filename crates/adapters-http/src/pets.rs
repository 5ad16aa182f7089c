//! The operations of the interface: the names, paths and methods, and in a file each the handlers.

mod create;
mod digits;
pub(crate) mod get;
pub(crate) mod idempotency_key;
mod list;
pub(crate) mod list_query;

use actix_web::http::Method;

pub(crate) use create::create_pet;
pub(crate) use get::get_pet;
pub(crate) use list::list_pets;

/// Methods of the whole interface, as `Allow` and CORS list them.
pub(crate) const METHODS: &str = "GET, HEAD, POST";
/// Methods of `/v1/pets`.
pub(crate) const PETS_METHODS: &str = "GET, HEAD, POST";
/// Methods of `/v1/pets/{petId}`.
pub(crate) const PET_METHODS: &str = "GET, HEAD";

/// An operation of the interface.
pub(crate) struct Operation {
    /// Name in the interface.
    pub(crate) name: &'static str,
    /// Those with GET have HEAD, too.
    pub(crate) method: &'static str,
    /// Pattern of the path. Its parameter, if it has one, is the last segment.
    route: &'static str,
    /// Status of a success.
    pub(crate) success: u16,
}

/// Every operation. `routes.rs` has their handlers.
pub(crate) const OPERATIONS: [Operation; 3] = [
    Operation {
        name: "listPets",
        method: "GET",
        route: "/v1/pets",
        success: 200,
    },
    Operation {
        name: "createPet",
        method: "POST",
        route: "/v1/pets",
        success: 201,
    },
    Operation {
        name: "getPet",
        method: "GET",
        route: "/v1/pets/{petId}",
        success: 200,
    },
];

impl Operation {
    /// Returns the operation of a method at a path, which the router has decoded.
    pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Self> {
        let method = if method == Method::HEAD {
            "GET"
        } else {
            method.as_str()
        };
        OPERATIONS
            .iter()
            .find(|operation| operation.method == method && operation.has(path))
    }

    fn has(&self, path: &str) -> bool {
        let Some((start, _)) = self.route.split_once('{') else {
            return path == self.route;
        };
        path.strip_prefix(start)
            .is_some_and(|value| !value.is_empty() && !value.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The methods of the operations that this selects, and HEAD.
    fn methods_of(is_selected: impl Fn(&Operation) -> bool) -> BTreeSet<&'static str> {
        let selected = OPERATIONS.iter().filter(|operation| is_selected(operation));
        let methods = selected.map(|operation| operation.method);
        methods.chain(["HEAD"]).collect()
    }

    #[test]
    fn the_methods_of_the_interface_and_of_each_path_are_those_of_its_operations() {
        let listed = |methods: &'static str| methods.split(", ").collect();
        let of_path = |path| methods_of(|operation| operation.route == path);
        assert_eq!(methods_of(|_| true), listed(METHODS));
        assert_eq!(of_path("/v1/pets"), listed(PETS_METHODS));
        assert_eq!(of_path("/v1/pets/{petId}"), listed(PET_METHODS));
    }

    #[test]
    fn a_path_that_goes_on_after_the_one_of_a_pet_and_one_without_an_id_have_no_operation() {
        for (path, has_operation) in [
            ("/v1/pets/1", true),
            ("/v1/pets/", false),
            ("/v1/pets/1/x", false),
        ] {
            assert_eq!(
                Operation::find(&Method::GET, path).is_some(),
                has_operation,
                "{path}"
            );
        }
    }
}
