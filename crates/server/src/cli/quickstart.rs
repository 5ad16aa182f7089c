//! The quickstart: a server without configured API keys generates one and prints how to use it. The token is printed on
//! standard error, never in the log.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
};

use animal_store_app::ApiToken;
use secrecy::{ExposeSecret, SecretString};

use super::random::random_bits;
use crate::config::KeysConfig;

/// Adds a new API key if none is configured, and returns its token.
pub(super) fn generate_key(keys: &mut KeysConfig) -> anyhow::Result<Option<SecretString>> {
    let KeysConfig::Memory { tokens } = keys else { return Ok(None) };
    if !tokens.is_empty() {
        return Ok(None);
    }
    let token = ApiToken::from_random(&random_bits()?).secret().clone();
    tokens.push(token.clone());
    Ok(Some(token))
}

/// Prints the token in two requests to paste, and the address of the API explorer. Waits until standard error is read.
pub(super) async fn print(token: SecretString, address: SocketAddr) -> anyhow::Result<()> {
    Ok(tokio::task::spawn_blocking(move || write(&token, address)).await??)
}

fn write(token: &SecretString, address: SocketAddr) -> io::Result<()> {
    let mut stderr = io::stderr();
    let (margin, blank) = if stderr.is_terminal() { ("  ", "\n") } else { ("", "") };
    let curl = format!("curl -i -H 'Authorization: Bearer {}'", token.expose_secret());
    let text = format!(
        "{blank}\
         {margin}The animal store listens on http://{address}. No API key is configured:\n\
         {margin}the key below is valid until the process ends.\n\
         {blank}\
         {margin}{curl} -d '{{\"name\":\"Rex\",\"categoryId\":1,\"status\":\"available\"}}' \
         -H 'Content-Type: application/json' 'http://{address}/v1/pets'\n\
         {margin}{curl} 'http://{address}/v1/pets?status=available'\n\
         {blank}\
         {margin}In a browser, with the same key: http://{address}/docs\n\
         {blank}"
    );
    stderr.write_all(text.as_bytes())
}
