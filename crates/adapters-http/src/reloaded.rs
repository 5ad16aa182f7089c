//! Settings that can be replaced while requests are served.

use std::{
    cell::RefCell,
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use tokio::sync::watch;

/// A setting that can be replaced, such as a limit, with its state. Clones share it.
pub struct Reloaded<T>(watch::Sender<Option<Arc<T>>>);

/// The setting in one worker. If it was not replaced, reading it costs an atomic load.
pub(crate) struct Latest<T> {
    changes: RefCell<watch::Receiver<Option<Arc<T>>>>,
    value: RefCell<Option<Arc<T>>>,
}

impl<T: PartialEq> Reloaded<T> {
    /// Creates a setting. `None`: it is not set.
    pub fn new(value: Option<T>) -> Self {
        Self(watch::Sender::new(value.map(Arc::new)))
    }

    /// Returns the value.
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.borrow().clone()
    }

    /// Replaces the value by that of another setting. If both are equal, the value stays, with its state.
    pub fn change_to(&self, other: &Self) {
        let new = other.get();
        self.0.send_if_modified(|value| {
            let differs = *value != new;
            if differs {
                *value = new;
            }
            differs
        });
    }

    pub(crate) fn latest(&self) -> Latest<T> {
        let mut changes = self.0.subscribe();
        let value = changes.borrow_and_update().clone();
        Latest { changes: changes.into(), value: value.into() }
    }
}

impl<T> Latest<T> {
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        let mut changes = self.changes.borrow_mut();
        // It fails if nothing can replace the value any more.
        if changes.has_changed().unwrap_or(false) {
            self.value.replace(changes.borrow_and_update().clone());
        }
        self.value.borrow().clone()
    }
}

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: PartialEq> Default for Reloaded<T> {
    fn default() -> Self {
        Self::new(None)
    }
}

impl<T: Debug> Debug for Reloaded<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Option::fmt(&self.0.borrow(), formatter)
    }
}
