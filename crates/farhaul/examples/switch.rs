//! The congestion controller of a live connection changes.

use farhaul::Endpoint;
use farhaul::cc::Spec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint =
        Endpoint::builder().plain().controller_with(|seed| Spec::default().build(seed)).bind("0.0.0.0:0".parse()?)?;
    let stream = endpoint.connect("192.0.2.1:9000")?;
    stream.send_all(b"under the default law, ")?;
    stream.set_controller_with("cubic".parse::<Spec>()?.build(1))?;
    stream.send_all(b"and under CUBIC")?;
    stream.finish()?;
    Ok(())
}
