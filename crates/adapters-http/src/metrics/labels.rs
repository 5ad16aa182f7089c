//! The values of the labels: what the interface has, never a text of the client.

use actix_web::http::Method;

/// Declares the values of a label, with their texts.
macro_rules! label {
    ($(#[$doc:meta])* $name:ident { $($(#[$value_doc:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$value_doc])* $value,)+ }

        impl $name {
            pub(crate) const ALL: [Self; [$($text),+].len()] = [$(Self::$value),+];

            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

label! {
    Operation {
        ListPets = "listPets",
        CreatePet = "createPet",
        GetPet = "getPet",
        /// The path and the method are those of no operation.
        None = "none",
    }
}

label! {
    MethodLabel {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        /// A method that no operation has.
        Other = "other",
    }
}

label! {
    /// The limit because of which a request is refused.
    Shed {
        InFlight = "in_flight",
        KeyShare = "key_share",
        RateLimit = "rate_limit",
        AuthFailures = "auth_failures",
        /// The queue of the storage is full.
        StorageQueue = "storage_queue",
        /// Too many API keys are being looked up.
        KeyLookups = "key_lookups",
    }
}

/// The operation and the method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestLabels {
    pub(crate) operation: Operation,
    pub(super) method: MethodLabel,
}

impl RequestLabels {
    /// Labels of a request that was refused before the application received it.
    pub(crate) const REFUSED: Self = Self {
        operation: Operation::None,
        method: MethodLabel::Other,
    };

    /// Returns the labels of a request, whether it is authorised or not. `path` is decoded as the router decodes it.
    /// The paths are those of `routes.rs`: the route of a request is not known if it was refused before, for example
    /// because it has no API key.
    pub(crate) fn find(method: &Method, path: &str) -> Self {
        let method = match *method {
            Method::GET => MethodLabel::Get,
            Method::HEAD => MethodLabel::Head,
            Method::POST => MethodLabel::Post,
            _ => MethodLabel::Other,
        };
        let operation = match (path.strip_prefix("/v1/pets"), method) {
            (Some(""), MethodLabel::Get | MethodLabel::Head) => Operation::ListPets,
            (Some(""), MethodLabel::Post) => Operation::CreatePet,
            (Some(rest), MethodLabel::Get | MethodLabel::Head) => match rest.strip_prefix('/') {
                Some(id) if !id.is_empty() && !id.contains('/') => Operation::GetPet,
                _ => Operation::None,
            },
            _ => Operation::None,
        };
        Self { operation, method }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_its_path_and_its_methods() {
        for (method, path, operation) in [
            (Method::GET, "/v1/pets", Operation::ListPets),
            (Method::HEAD, "/v1/pets", Operation::ListPets),
            (Method::POST, "/v1/pets", Operation::CreatePet),
            (Method::GET, "/v1/pets/1", Operation::GetPet),
            (Method::HEAD, "/v1/pets/x%2Fy", Operation::GetPet),
            (Method::DELETE, "/v1/pets", Operation::None),
            (Method::POST, "/v1/pets/1", Operation::None),
            (Method::GET, "/v1/pets/", Operation::None),
            (Method::GET, "/v1/pets/1/", Operation::None),
            (Method::GET, "/v1/pets1", Operation::None),
            (Method::GET, "/v1/pets1/1", Operation::None),
            (Method::GET, "/docs", Operation::None),
        ] {
            assert_eq!(
                RequestLabels::find(&method, path).operation,
                operation,
                "{method} {path}"
            );
        }
    }

    #[test]
    fn a_method_that_no_operation_has_is_other() {
        for method in ["PUT", "OPTIONS", "get", "BREW"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(
                RequestLabels::find(&method, "/v1/pets"),
                RequestLabels::REFUSED
            );
        }
    }
}
