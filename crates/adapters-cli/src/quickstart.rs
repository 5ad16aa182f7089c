//! The quickstart: what a start prints about its first API key.

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use animal_store_app::ApiToken;
use anyhow::Context;
use secrecy::ExposeSecret;
use tokio::task::spawn_blocking;

/// How the printed requests trust a certificate.
const TLS_NOTICE: &str = "\n  The URL needs a name of the certificate. If your own authority signed it, curl needs: --cacert FILE";

/// The service of a quickstart.
pub struct Quickstart {
    /// Address of the API.
    pub address: SocketAddr,
    /// Whether the API needs TLS.
    pub has_tls: bool,
    /// URL by which clients reach the API, if the configuration has one.
    pub public_url: Option<String>,
}

impl Quickstart {
    /// Prints a notice on standard error, with the token in two requests to paste, and the address of the API explorer.
    /// Waits until standard error is read.
    ///
    /// # Errors
    /// If standard error cannot be written.
    pub async fn print(&self, notice: &str, token: Option<&ApiToken>) -> anyhow::Result<()> {
        let mut text = self.notice(notice);
        if let Some(token) = token {
            text += &self.requests(token);
        }
        let written = spawn_blocking(move || io::stderr().write_all(text.as_bytes())).await?;
        written.context("the API key cannot be printed on standard error")
    }

    fn listener(&self) -> String {
        let scheme = if self.has_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    fn notice(&self, notice: &str) -> String {
        let listener = self.listener();
        let tls_notice = if self.has_tls { TLS_NOTICE } else { "" };
        format!("\n  The animal store listens on {listener}.\n  {notice}{tls_notice}\n\n")
    }

    fn requests(&self, token: &ApiToken) -> String {
        let url = self.url();
        let curl = "curl -i -H @-";
        // On standard input: the arguments of a process can be read by every user of the machine.
        let header = format!(
            "<<<'Authorization: Bearer {}'",
            token.secret().expose_secret()
        );
        let pet = r#"{"name":"Rex","categoryId":1,"status":"available"}"#;
        format!(
            "  {curl} -d '{pet}' -H 'Content-Type: application/json' '{url}/pets' {header}\n  \
             {curl} '{url}/pets?status=available' {header}\n\n  In a browser, with the same key: {}/docs\n\n",
            self.origin()
        )
    }

    fn url(&self) -> String {
        match &self.public_url {
            Some(url) => url.clone(),
            None => format!("{}/v1", self.origin()),
        }
    }

    /// Returns the listener by a name that its certificate can have.
    fn origin(&self) -> String {
        if self.has_tls && self.address.ip().is_loopback() {
            format!("https://localhost:{}", self.address.port())
        } else {
            self.listener()
        }
    }
}
