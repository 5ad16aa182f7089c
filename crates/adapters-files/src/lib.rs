//! Pets in files.
