use std::{fmt, str::FromStr};

use thiserror::Error;

/// A permission of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `listPets` and `getPet`
    Read,
    /// `createPet`
    Write,
}

/// The text is not the name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a scope must be read or write")]
pub struct ScopeError;

impl Scope {
    /// All scopes, in the order in which they are printed.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(name: &str) -> Result<Self, ScopeError> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == name)
            .ok_or(ScopeError)
    }
}

/// A set of scopes. A key with an empty set may call no operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Scopes {
    read: bool,
    write: bool,
}

impl Scopes {
    /// The set of all scopes.
    pub const ALL: Self = Self {
        read: true,
        write: true,
    };

    /// Returns whether the set contains a scope.
    pub const fn contains(self, scope: Scope) -> bool {
        match scope {
            Scope::Read => self.read,
            Scope::Write => self.write,
        }
    }

    /// Iterates over the scopes of the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |&scope| self.contains(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        for scope in scopes {
            match scope {
                Scope::Read => set.read = true,
                Scope::Write => set.write = true,
            }
        }
        set
    }
}

/// Prints the names, separated by commas.
impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.iter().map(Scope::as_str).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_the_scopes_it_was_made_from() {
        let scopes = |scopes: &[Scope]| scopes.iter().copied().collect::<Scopes>();

        for (set, read, write, text) in [
            (scopes(&[]), false, false, ""),
            (scopes(&[Scope::Read]), true, false, "read"),
            (scopes(&[Scope::Write, Scope::Write]), false, true, "write"),
            (
                scopes(&[Scope::Write, Scope::Read]),
                true,
                true,
                "read,write",
            ),
            (Scopes::ALL, true, true, "read,write"),
        ] {
            assert_eq!(
                (set.contains(Scope::Read), set.contains(Scope::Write)),
                (read, write)
            );
            assert_eq!(set.to_string(), text);
            assert_eq!(set.iter().collect::<Scopes>(), set);
        }
    }

    #[test]
    fn a_scope_is_parsed_from_its_exact_name() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        for name in ["", "Read", "read ", "admin"] {
            assert_eq!(name.parse::<Scope>(), Err(ScopeError));
        }
    }
}
