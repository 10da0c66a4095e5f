//! A port that calls two addresses of a listener at all addresses.

use std::io::{Read, Write};
use std::net::IpAddr;

use farhaul::Endpoint;
use farhaul::registry::protocols;

#[test]
fn one_port_has_a_connection_with_each_address_of_a_listener() {
    for entry in protocols() {
        let end = |address: &str| {
            let builder = Endpoint::builder().plain().protocol(entry.name.parse().unwrap());
            builder.bind(address.parse().unwrap()).unwrap()
        };
        let (hub, caller) = (end("0.0.0.0:0"), end("127.0.0.1:0"));
        // A port that calls alone is not told where datagrams come to.
        let other = end("127.0.0.1:0").listen().unwrap();
        let mut called = hub.connect(other.local_addr()).unwrap();
        let listener = hub.listen().unwrap();
        let pairs = [1, 2].map(|last| {
            let ip = IpAddr::from([127, 0, 0, last]);
            let near = caller.connect((ip, hub.local_addr().port())).unwrap();
            let (far, _) = listener.accept().unwrap();
            (near, far, ip, last)
        });
        for (mut near, mut far, ip, last) in pairs {
            far.write_all(&[last; 10_000]).unwrap();
            let mut got = vec![0; 1];
            near.read_exact(&mut got).unwrap();
            assert_eq!((near.asked_ip(), far.asked_ip()), (None, Some(ip)), "{}", entry.name);
            far.finish().unwrap();
            near.read_to_end(&mut got).unwrap();
            assert!(got == vec![last; 10_000], "{} {ip}", entry.name);
        }
        let (mut far, _) = other.accept().unwrap();
        far.write_all(b"x").unwrap();
        called.read_exact(&mut [0]).unwrap();
        assert_eq!(called.asked_ip(), None);
    }
}
