//! A controller of this program in a scenario, in either world: `cargo run --release -p farhaul-lab --example own-controller
//! [SCENARIO.toml [emu]]`. Flows of the scenario name it `own`.

use std::sync::atomic::AtomicBool;

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec};
use farhaul_lab::sweep::{Options, Work, sweep};
use farhaul_lab::world::{Choices, Venue};
use farhaul_lab::{Figure, Overrides};
use farhaul_units::Instant;

const SCENARIO: &str =
    "title = 'AIMD'\nduration = '10s'\nlink = { rate = '100mbit', rtt = '20ms' }\n[[flow]]\ncontroller = 'own'\n";

/// The window doubles each RTT up to the first loss, then grows by one packet each RTT, and halves at most once each RTT.
struct Aimd {
    doubles: bool,
    next_cut: Instant,
}

impl Controller for Aimd {
    fn name(&self) -> &str {
        "own"
    }

    fn on_connect(&mut self, _: &Path, control: &mut Control) {
        control.window_of_outstanding = true;
    }

    fn on_ack(&mut self, _: &Path, ack: &AckEvent, control: &mut Control) {
        let acked = f64::from(ack.newly_acked);
        control.cwnd =
            control.cwnd.map(|cwnd| cwnd + if self.doubles { acked.min(cwnd) } else { acked.min(cwnd) / cwnd });
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        if loss.newly_lost > 0 && path.now >= self.next_cut {
            self.doubles = false;
            control.cwnd = control.cwnd.map(|cwnd| (cwnd / 2.0).max(2.0));
            self.next_cut = path.now + path.rtt;
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let own = Spec::made("own", |_seed| Box::new(Aimd { doubles: true, next_cut: Instant::ZERO }));
    let overrides = Overrides { controllers: [("own".to_owned(), own)].into(), ..Overrides::default() };
    let figure = match arguments.next() {
        Some(file) => Figure::find(&file, &overrides)?,
        None => Figure::text("own", SCENARIO.to_owned(), &overrides)?,
    };
    let venue = match arguments.next() {
        Some(_) => Venue::Emulator(Choices::default()),
        None => Venue::Simulator,
    };
    let mut works = [Work { figure: figure.info.id.clone(), jobs: figure.experiment.jobs("")?, store: None }];
    let options = Options {
        venue: &venue,
        threads: 1,
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
        ran: &mut |run| {
            for (name, value) in
                run.metrics.iter().filter(|(name, _)| name.starts_with("goodput") || name.starts_with("cpu"))
            {
                println!("{name} {value}");
            }
            println!("flaws {:?}", run.flaws());
        },
        finished: &mut |_, _| Ok(()),
    };
    Ok(sweep(&mut works, options)?)
}
