//! Tokens of API keys that an operator gives to the program.

use animal_store_adapters_http::is_bearer_token;
use animal_store_app::ApiToken;
use secrecy::{ExposeSecret, SecretString};

/// The token, or why clients could not use it; the reason does not repeat it.
pub(crate) fn parse(token: &SecretString) -> Result<ApiToken, &'static str> {
    if !is_bearer_token(token.expose_secret()) {
        return Err("a token has 1 to 512 of A-Z a-z 0-9 - . _ ~ + / and ends in any number of =");
    }
    ApiToken::from_outside(token.clone()).ok_or("it is mistyped, its checksum is wrong")
}
