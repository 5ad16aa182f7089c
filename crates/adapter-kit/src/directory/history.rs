//! States of a store of keys, and their order: a version without an identity proves nothing.
//!
//! **Problem.** Another store may be restored in place of the one that is known, or an older state of it, to which other
//! changes are made. Its versions say nothing about the known keys.
//!
//! **Invariant.** Each change writes random bytes, its mark. The store lists the last marks by their versions. Changes
//! are read instead of all keys only if the list has the mark of the known state and one of each later change. A program
//! that writes no marks leaves a gap. All keys of a state are believed only if the state has their numbers, because a
//! dump that is being restored has the state before the keys.
//!
//! **Proof.** `schedules.rs`: histories of two stores.

use std::fmt;

/// Number of marks that a store lists: those of the last changes.
pub(crate) const MARKS_KEPT: i64 = 1000;

/// The state of the keys of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// Each change increases it.
    pub version: i64,
    /// The mark of the last change that has one.
    pub mark: Vec<u8>,
    /// How many keys and tokens the store has.
    pub counts: KeyCounts,
}

/// Numbers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyCounts {
    /// Keys, including those that are revoked.
    pub keys: i64,
    /// Tokens, including those that have expired.
    pub tokens: i64,
}

impl KeyState {
    /// Returns whether the changes after the version of `known` lead from that state to this one. `marks`: how many
    /// marks the store lists of later versions, and of this version if it is that of `known`.
    pub const fn continues(&self, known: &Self, marks: i64) -> bool {
        let changes = self.version.saturating_sub(known.version);
        changes > 0 && marks == changes.saturating_add(1)
    }
}

impl fmt::Display for KeyCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, tokens } = self;
        write!(formatter, "{keys} API keys with {tokens} tokens")
    }
}

/// Returns the mark of a change.
///
/// # Panics
/// If the operating system provides no random bits.
pub(crate) fn new_mark() -> [u8; 16] {
    let mut mark = [0; 16];
    getrandom::fill(&mut mark).expect("the operating system provides random bits");
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_continues_an_earlier_one_if_the_store_lists_a_mark_of_it_and_of_each_later_change() {
        let state = |version| KeyState {
            version,
            mark: Vec::new(),
            counts: KeyCounts::default(),
        };
        for (version, marks, expected) in
            [(8, 2, true), (8, 1, false), (7, 1, false), (6, 0, false)]
        {
            let continues = state(version).continues(&state(7), marks);
            assert_eq!(continues, expected, "{version} with {marks} marks");
        }
    }

    #[test]
    fn counts_are_written_with_what_they_count() {
        let counts = KeyCounts { keys: 2, tokens: 3 };
        assert_eq!(counts.to_string(), "2 API keys with 3 tokens");
    }
}
