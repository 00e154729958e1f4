//! Which addresses a call may reach. A user who may name a host must not reach what only this machine's network may.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What the configuration allows besides public addresses.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    names: HashSet<String>,
    networks: Vec<IpNet>,
}

impl Allowed {
    /// Adds a network, an address, or a host's name as URLs write it.
    pub fn add(&mut self, word: &str) -> Result<(), String> {
        if let Ok(network) = word.parse::<IpNet>() {
            self.networks.push(network);
        } else if let Ok(address) = word.parse::<IpAddr>() {
            self.networks.push(IpNet::from(address.to_canonical()));
        } else if !word.is_empty() && word.chars().all(is_of_name) {
            self.names.insert(word.to_ascii_lowercase());
        } else {
            return Err(format!(
                "{word:?} is not a host name, an address, or a network such as 10.1.0.0/16"
            ));
        }
        Ok(())
    }

    /// `name` is the URL's host, in lower case; `address` is what would be connected to.
    pub fn permits(&self, name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address)
            || self.names.contains(name)
            || self
                .networks
                .iter()
                .any(|network| network.contains(&address))
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._".contains(letter)
}

/// Not globally reachable, by the IANA's registries of special-purpose addresses.
const NOT_PUBLIC_V4: [(Ipv4Addr, u8); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // Metadata service of Azure's machines and others: its number is in a public range.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Exceptions within the global range. Teredo (in the first) and 6to4 contain addresses of IPv4.
const NOT_PUBLIC_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// NAT64's well-known prefix: the address of IPv4 in it is checked instead.
const NAT64: (Ipv6Addr, u8) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|&net| in_v4(net, address)),
        IpAddr::V6(address) if in_v6(NAT64, address) => {
            let [.., a, b, c, d] = address.octets();
            is_public(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(address) => {
            in_v6(GLOBAL_V6, address) && !NOT_PUBLIC_V6.iter().any(|&net| in_v6(net, address))
        }
    }
}

fn in_v4((network, bits): (Ipv4Addr, u8), address: Ipv4Addr) -> bool {
    Ipv4Net::new_assert(network, bits).contains(&address)
}

fn in_v6((network, bits): (Ipv6Addr, u8), address: Ipv6Addr) -> bool {
    Ipv6Net::new_assert(network, bits).contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(allowed: &Allowed, name: &str, address: &str) -> bool {
        allowed.permits(name, address.parse().unwrap())
    }

    #[test]
    fn own_networks_are_refused() {
        let none = Allowed::default();
        for own in [
            "127.0.0.1",
            "127.255.0.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::1",
            "2001:0:7f00:1::",
        ] {
            assert!(!permits(&none, "evil.example", own), "{own}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "169.253.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            assert!(permits(&none, "example.com", public), "{public}");
        }
    }

    #[test]
    fn the_configuration_allows_names_and_networks() {
        let mut allowed = Allowed::default();
        for word in [
            "Hooks.internal",
            "10.1.0.0/16",
            "fd00::/8",
            "192.168.0.7",
            "::ffff:127.0.0.9",
        ] {
            allowed.add(word).unwrap();
        }
        assert!(permits(&allowed, "hooks.internal", "127.0.0.1"));
        assert!(!permits(&allowed, "other.internal", "127.0.0.1"));
        assert!(permits(&allowed, "x", "10.1.255.1") && !permits(&allowed, "x", "10.2.0.1"));
        assert!(permits(&allowed, "x", "::ffff:10.1.0.1") && permits(&allowed, "x", "fd12::1"));
        assert!(permits(&allowed, "x", "192.168.0.7") && !permits(&allowed, "x", "192.168.0.8"));
        assert!(permits(&allowed, "x", "::ffff:127.0.0.9"));
        for wrong in ["", "10.1.0.0/99", "http://x", "a b"] {
            assert!(allowed.add(wrong).is_err(), "{wrong}");
        }
    }
}
