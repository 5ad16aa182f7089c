//! An API key for whoever starts the service for the first time, and what to do with it.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
};

use animal_store_app::ApiToken;
use secrecy::{ExposeSecret, SecretString};

use crate::{config::KeysConfig, random};

/// Makes a key where none is configured, and returns its token.
pub(crate) fn make_key(keys: &mut KeysConfig) -> anyhow::Result<Option<SecretString>> {
    let KeysConfig::Memory { tokens } = keys else { return Ok(None) };
    if !tokens.is_empty() {
        return Ok(None);
    }
    let token = ApiToken::from_random(&random::bits()?).secret().clone();
    tokens.push(token.clone());
    Ok(Some(token))
}

/// Shows the key, once, with two requests to paste and a page to try others. Standard error, so that it never gets into the log.
pub(crate) fn show(token: &SecretString, address: SocketAddr) -> io::Result<()> {
    let mut stderr = io::stderr();
    let (margin, blank) = if stderr.is_terminal() { ("  ", "\n") } else { ("", "") };
    let token = token.expose_secret();
    let text = format!(
        "{blank}\
         {margin}The animal store listens on http://{address}. No API key is configured:\n\
         {margin}this one is valid until the process ends.\n\
         {blank}\
         {margin}curl -i -H 'Authorization: Bearer {token}' -d '{{\"name\":\"Rex\",\"categoryId\":1,\"status\":\"available\"}}' -H 'Content-Type: application/json' 'http://{address}/v1/pets'\n\
         {margin}curl -i -H 'Authorization: Bearer {token}' 'http://{address}/v1/pets?status=available'\n\
         {blank}\
         {margin}In a browser, with the same key: http://{address}/docs\n\
         {blank}"
    );
    stderr.write_all(text.as_bytes())
}
