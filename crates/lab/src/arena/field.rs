//! The field: all laws in one table, with a bar for each family of cells, and what a law costs.

use std::hint::black_box;

use askama::Template;
use farhaul_cc::registry::{LawFamily, controllers};
use farhaul_cc::{AckEvent, Control, DeliveryEvent, Path, RateSample, Spec};
use farhaul_udp::Clock;
use farhaul_units::{Duration, PacketRate, SeqNo};

use super::cell::IDEAL;
use super::family::Family;
use super::results::{Results, Tally};
use crate::report::svg::{Anchor, Canvas, escape, number};

/// The width of a bar with its gap, the height of the tallest, and of the names above them.
const STEP: f64 = 13.0;
const HEIGHT: f64 = 26.0;
const NAMES: f64 = 96.0;

/// Rules beside those of other pages.
const STYLE: &str = include_str!("page/arena.css");

#[derive(Template)]
#[template(path = "arena/field.html")]
struct FieldPage<'a> {
    results: &'a Results,
    families: Vec<Family>,
    laws: Vec<Law<'a>>,
}

/// A row.
struct Law<'a> {
    name: &'a str,
    family: LawFamily,
    all: Tally,
    bars: String,
    /// Processor time of its callbacks for a packet, ns.
    cost: f64,
}

/// The page: one HTML file that loads nothing from the network. Laws stand by family, the best first.
#[must_use]
pub fn field(results: &Results) -> String {
    let families = results.families();
    let law = |(place, name): (usize, &'_ String)| {
        let family = controllers().into_iter().find(|entry| name.split(':').next() == Some(entry.name));
        (place, family.map_or(LawFamily::Own, |entry| entry.family))
    };
    let mut laws: Vec<Law<'_>> = results
        .controllers
        .iter()
        .enumerate()
        .map(|row| {
            let (place, family) = law(row);
            let bars =
                bars(&families.iter().map(|family| (*family, results.tally(place, Some(*family)))).collect::<Vec<_>>());
            Law { name: row.1, family, all: results.tally(place, None), bars, cost: cost(row.1) }
        })
        .collect();
    laws.sort_by(|one, other| {
        (one.family as u8).cmp(&(other.family as u8)).then(other.all.score.total_cmp(&one.all.score))
    });
    FieldPage { results, families, laws }.to_string()
}

impl FieldPage<'_> {
    /// Whether the law at this place is the first of its family.
    fn begins_family(&self, place: &usize) -> bool {
        *place == 0 || self.laws[place - 1].family != self.laws[*place].family
    }

    /// The names above the bars.
    fn names(&self) -> String {
        let mut canvas = Canvas::default();
        for (place, family) in self.families.iter().enumerate() {
            let x = (place as f64 + 0.7) * STEP;
            canvas.put(&format!("<g transform=\"translate({} {}) rotate(-60)\">", number(x), number(NAMES - 4.0)));
            canvas.text("words small", (0.0, 0.0), Anchor::Start, family.name());
            canvas.put("</g>");
        }
        drawing(canvas, self.families.len() as f64 * STEP + 40.0, NAMES)
    }
}

/// A bar for each family: its height is the mean score, its colour says how many cells are passed.
fn bars(tallies: &[(Family, Tally)]) -> String {
    let mut canvas = Canvas::default();
    for (place, (family, tally)) in tallies.iter().enumerate() {
        let (x, height) = (place as f64 * STEP, HEIGHT * tally.score.clamp(0.0, 1.0));
        let words = format!("{family}: {} of {}, mean score {:.2}", tally.passed, tally.cells, tally.score);
        let class = if 2 * tally.passed >= tally.cells { "met" } else { "unmet" };
        canvas.put(&format!(
            "<g><title>{}</title><rect class=\"bar {class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></g>",
            escape(&words),
            number(x),
            number(HEIGHT - height),
            number(STEP - 3.0),
            number(height)
        ));
    }
    drawing(canvas, tallies.len() as f64 * STEP, HEIGHT)
}

fn drawing(canvas: Canvas, width: f64, height: f64) -> String {
    let size = format!("{} {}", number(width), number(height));
    let (width, height) = (number(width), number(height));
    format!(
        "<svg class=\"bars\" viewBox=\"0 0 {size}\" width=\"{width}\" height=\"{height}\">{}</svg>",
        canvas.finish()
    )
}

/// Packets of one acknowledgement, those of UDT's light one, and acknowledgements that are timed.
const ACKED: u32 = 64;
const ACKS: u32 = 20_000;

/// Processor time of a law's callbacks for a packet, ns: 64 packets an acknowledgement, a receipt with each, 1 Gbit/s, 20 ms. The least of
/// a few rounds, which others on the machine disturb least. Zero for what is no law.
fn cost(name: &str) -> f64 {
    let Ok(spec) = name.parse::<Spec>() else {
        debug_assert_eq!(name, IDEAL, "the command line checks names");
        return 0.0;
    };
    let rounds = (0..5).map(|_| time(&spec).as_nanos() as f64 / f64::from(ACKED * ACKS));
    rounds.fold(f64::INFINITY, f64::min)
}

fn time(spec: &Spec) -> Duration {
    let (mut law, mut control, mut path) = (spec.build(1), Control::initial(), Path::default());
    let (rtt, rate) = (Duration::from_millis(20), PacketRate::new(83_333.0));
    (path.mss, path.rtt, path.min_rtt, path.latest_rtt, path.max_window) = (1_500, rtt, Some(rtt), Some(rtt), 100_000);
    (path.arrival_rate, path.capacity, path.delivery_rate) = (Some(rate), Some(rate), Some(rate));
    (path.in_flight, path.outstanding) = (1_667, 1_667.0);
    law.on_connect(&path, &mut control);
    let clock = Clock::start();
    let begin = clock.now();
    for ack in 1..=ACKS {
        path.now += rate.send_period().time_for(ACKED.into());
        path.next_seq = SeqNo::new(ack * ACKED + path.in_flight);
        path.packets_sent = u64::from(path.next_seq.value());
        let delivered = f64::from(ack * ACKED);
        let mut news = DeliveryEvent::default();
        (news.newly_delivered, news.delivered, news.rtt) = (f64::from(ACKED), delivered, Some(rtt));
        let prior_delivered = (delivered - f64::from(path.in_flight)).max(0.0);
        let (in_flight, rate) = (f64::from(path.in_flight), Some(rate));
        news.sample = Some(RateSample {
            prior_delivered,
            delivered: delivered - prior_delivered,
            rate,
            in_flight,
            ..RateSample::default()
        });
        if law.wants_deliveries() {
            law.on_delivery(&path, &news, &mut control);
        }
        let mut acked = AckEvent::default();
        (acked.seq, acked.newly_acked, acked.light) = (SeqNo::new(ack * ACKED), ACKED, ack % 13 != 0);
        acked.rtt_sample = Some(rtt);
        law.on_ack(&path, &acked, &mut control);
    }
    black_box(control);
    clock.now() - begin
}
