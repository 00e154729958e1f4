//! Signatures by Standard Webhooks (version 1, HMAC-SHA256): standardwebhooks.com

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

#[derive(Clone)]
pub struct Secret(Hmac<Sha256>);

impl Secret {
    /// `whsec_` and 24 to 64 bytes as base64, as the scheme says. The error does not repeat the secret.
    pub fn parse(text: &str) -> Result<Secret, String> {
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.filter(|bytes| (24..=64).contains(&bytes.len()));
        let bytes = bytes.ok_or_else(|| {
            format!("a secret is {PREFIX} and 24 to 64 random bytes as base64: echo {PREFIX}$(openssl rand -base64 32)")
        })?;
        let mac = Hmac::new_from_slice(&bytes).map_err(|error| error.to_string())?;
        Ok(Secret(mac))
    }
}

/// The header webhook-signature: one signature for each secret, so that a receiver needs to know only one of them.
pub fn signatures(secrets: &[Secret], id: &str, seconds: u64, payload: &[u8]) -> String {
    let signed = secrets.iter().map(|secret| {
        let mut mac = secret.0.clone();
        mac.update(id.as_bytes());
        mac.update(b".");
        mac.update(seconds.to_string().as_bytes());
        mac.update(b".");
        mac.update(payload);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    signed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_published_vector() {
        let secret = Secret::parse(PUBLISHED).unwrap();
        let payload = br#"{"test": 2432232314}"#;
        let said = signatures(
            &[secret],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            payload,
        );
        assert_eq!(said, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_signs() {
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let secrets = [PUBLISHED, other].map(|text| Secret::parse(text).unwrap());
        let both = signatures(&secrets, "a", 1, b"b");
        let single = secrets.map(|secret| signatures(&[secret], "a", 1, b"b"));
        assert_eq!(both, single.join(" "));
        assert_ne!(single[0], single[1]);
    }

    #[test]
    fn what_is_no_secret() {
        for wrong in [
            "",
            "whsec_",
            "whsec_c2hvcnQ=",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_!",
        ] {
            let refused = Secret::parse(wrong).map(|_| ()).unwrap_err();
            assert!(refused.starts_with("a secret is"), "{refused}");
        }
    }
}
