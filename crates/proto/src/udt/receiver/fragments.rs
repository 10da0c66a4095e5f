//! Packets that arrive in fragments, because the path no longer carries them whole.

use std::collections::VecDeque;

use farhaul_wire::udt4::Fragment;

/// Most packets of which fragments are missing. A packet's fragments arrive in one train, so it is rarely more than one. The sender repeats
/// the whole packet if one is forgotten.
const MOST_PACKETS: usize = 64;

/// Packets of which some fragments have arrived.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Oldest first.
    partial: VecDeque<Partial>,
    /// The memory of the last complete packet, for reuse.
    spare: Vec<u8>,
}

#[derive(Debug)]
struct Partial {
    seq: u32,
    field: u32,
    count: u8,
    /// A bit for each fragment that has arrived.
    arrived: u64,
    payload: Vec<u8>,
}

impl Fragments {
    /// A fragment arrived. Returns the payload of its packet if that is complete. Give the memory [back](Self::give_back) then.
    pub(super) fn on_fragment(&mut self, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        let offset = fragment.offset()?;
        let index = self.partial.iter().position(|partial| partial.seq == fragment.seq.value());
        let index = match index {
            Some(index) if self.partial[index].is_of(fragment) => index,
            // The packet was cut anew, because the path has changed again.
            Some(index) => {
                self.partial.remove(index);
                self.begin(fragment)
            }
            None => self.begin(fragment),
        };
        let partial = self.partial.get_mut(index)?;
        partial.payload.get_mut(offset..offset + fragment.bytes.len())?.copy_from_slice(fragment.bytes);
        partial.arrived |= 1 << fragment.index;
        if partial.arrived.count_ones() < fragment.count.into() {
            return None;
        }
        self.partial.remove(index).map(|partial| partial.payload)
    }

    /// Returns the memory of a packet for reuse.
    pub(super) fn give_back(&mut self, payload: Vec<u8>) {
        self.spare = payload;
    }

    fn begin(&mut self, fragment: &Fragment<'_>) -> usize {
        if self.partial.len() == MOST_PACKETS {
            self.partial.pop_front();
        }
        let mut payload = std::mem::take(&mut self.spare);
        payload.clear();
        payload.resize(fragment.total.into(), 0);
        let (seq, field) = (fragment.seq.value(), fragment.field.to_word());
        self.partial.push_back(Partial { seq, field, count: fragment.count, arrived: 0, payload });
        self.partial.len() - 1
    }

    pub(super) fn memory(&self) -> usize {
        self.spare.capacity() + self.partial.iter().map(|partial| partial.payload.capacity()).sum::<usize>()
    }
}

impl Partial {
    fn is_of(&self, fragment: &Fragment<'_>) -> bool {
        (self.field, self.count, self.payload.len())
            == (fragment.field.to_word(), fragment.count, fragment.total.into())
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::{MsgNo, SeqNo};
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    fn fragment(seq: u32, index: u8, bytes: &[u8]) -> Fragment<'_> {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        Fragment { seq: SeqNo::new(seq), field, total: 25, index, count: 3, bytes }
    }

    #[test]
    fn fragments_in_any_order_make_a_packet_once() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.on_fragment(&fragment(7, 2, &[3; 5])), None);
        assert_eq!(fragments.on_fragment(&fragment(7, 0, &[1; 10])), None);
        assert_eq!(fragments.on_fragment(&fragment(7, 0, &[1; 10])), None, "again");
        let whole = fragments.on_fragment(&fragment(7, 1, &[2; 10])).unwrap();
        assert_eq!(whole, [[1; 10].as_slice(), &[2; 10], &[3; 5]].concat());
        fragments.give_back(whole);
        assert_eq!(fragments.on_fragment(&fragment(7, 1, &[2; 10])), None, "it begins anew");
    }

    #[test]
    fn a_packet_that_is_cut_anew_forgets_its_fragments() {
        let mut fragments = Fragments::default();
        fragments.on_fragment(&fragment(7, 0, &[1; 10]));
        let halves = |index, bytes| Fragment { count: 2, ..fragment(7, index, bytes) };
        assert_eq!(fragments.on_fragment(&halves(1, &[2; 12])), None);
        assert_eq!(fragments.on_fragment(&halves(0, &[1; 13])).unwrap(), [[1; 13].as_slice(), &[2; 12]].concat());
    }

    #[test]
    fn memory_is_bounded_however_many_packets_begin() {
        let mut fragments = Fragments::default();
        for seq in 0..10_000 {
            fragments.on_fragment(&Fragment { total: u16::MAX, ..fragment(seq, 0, &[1; 10]) });
        }
        assert!(fragments.memory() <= MOST_PACKETS * usize::from(u16::MAX), "{}", fragments.memory());
    }
}
