use std::{fmt, str::FromStr};

use thiserror::Error;

/// Something an API key may be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// `listPets` and `getPet`
    Read,
    /// `createPet`
    Write,
}

/// No scope has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a scope is read or write")]
pub struct UnknownScope;

impl Scope {
    /// Every scope, in the order in which they are written.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name).ok_or(UnknownScope)
    }
}

/// A set of scopes. A key without any may do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// All of them.
    pub const ALL: Self = Self(0b11);

    /// Whether this one is among them.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |&scope| self.contains(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

/// Their names, separated by commas.
impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.iter().map(Scope::as_str).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_was_made_of() {
        let scopes = |scopes: &[Scope]| scopes.iter().copied().collect::<Scopes>();

        for (set, read, write, text) in [
            (scopes(&[]), false, false, ""),
            (scopes(&[Scope::Read]), true, false, "read"),
            (scopes(&[Scope::Write, Scope::Write]), false, true, "write"),
            (scopes(&[Scope::Write, Scope::Read]), true, true, "read,write"),
            (Scopes::ALL, true, true, "read,write"),
        ] {
            assert_eq!((set.contains(Scope::Read), set.contains(Scope::Write)), (read, write));
            assert_eq!(set.to_string(), text);
            assert_eq!(set.iter().collect::<Scopes>(), set);
        }
    }

    #[test]
    fn a_scope_is_known_by_its_name_alone() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        for name in ["", "Read", "read ", "admin"] {
            assert_eq!(name.parse::<Scope>(), Err(UnknownScope));
        }
    }
}
