//! Static routes over nodes and links.

use std::collections::VecDeque;

/// No link leads there.
const NONE: u32 = u32::MAX;

/// For every node, the link towards every other node. A route has the fewest links; among equals the first added wins.
///
/// ```
/// use farhaul_netem::Routes;
///
/// // Two hosts with a router between them, and nothing that leads back to the first.
/// let routes = Routes::shortest(3, &[(0, 1), (1, 2), (2, 1)]);
/// assert_eq!(routes.links_between(0, 2), Some(vec![0, 1]));
/// assert_eq!(routes.next(2, 0), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Where each link leads from and to.
    links: Vec<(usize, usize)>,
    nodes: usize,
    /// The link to take from each node to each destination, or [`NONE`]: a row for each node. Four bytes each, because a
    /// thousand flows have millions of them.
    next: Vec<u32>,
}

impl Routes {
    /// The routes between `nodes` nodes, numbered from zero, over simplex `links` of the form (from, to).
    ///
    /// # Panics
    /// A link begins or ends at a node that does not exist.
    pub fn shortest(nodes: usize, links: &[(usize, usize)]) -> Self {
        let mut routes = Self { links: links.to_vec(), nodes, next: vec![NONE; nodes * nodes] };
        let mut into: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (link, &(_, to)) in links.iter().enumerate() {
            into[to].push(link);
        }
        // Backwards from each destination, breadth first.
        let mut reached: VecDeque<(usize, usize)> = (0..nodes).map(|node| (node, node)).collect();
        while let Some((node, destination)) = reached.pop_front() {
            for &link in &into[node] {
                let from = links[link].0;
                if from != destination && routes.next(from, destination).is_none() {
                    routes.set(from, destination, link);
                    reached.push_back((from, destination));
                }
            }
        }
        routes
    }

    fn set(&mut self, node: usize, destination: usize, link: usize) {
        assert!(destination < self.nodes, "a route leads to a node");
        self.next[node * self.nodes + destination] = u32::try_from(link).expect("fewer links than routes can name");
    }

    /// Sends packets for `destination` from `node` over `link` from now on, instead of the shortest route.
    ///
    /// # Panics
    /// The link begins at another node, or the link or a node does not exist.
    pub fn detour(&mut self, node: usize, destination: usize, link: usize) {
        assert_eq!(self.links[link].0, node, "a route takes a link that begins at its node");
        self.set(node, destination, link);
    }

    /// The link that leads from `node` towards `destination`. `None` if there is no route, or if `node` is the
    /// destination.
    pub fn next(&self, node: usize, destination: usize) -> Option<usize> {
        let row = self.next.get(node * self.nodes..)?.get(..self.nodes)?;
        row.get(destination).copied().filter(|link| *link != NONE).map(|link| link as usize)
    }

    /// The links of the route between two nodes; `None` if there is no route.
    pub fn links_between(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut at = from;
        let mut links = Vec::new();
        while at != to {
            let link = self.next(at, to)?;
            links.push(link);
            at = self.links[link].1;
            // Detours can form a loop.
            if links.len() > self.nodes {
                return None;
            }
        }
        Some(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 2 - 3, and a simplex short cut from 0 to 3.
    fn chain() -> Routes {
        Routes::shortest(4, &[(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (0, 3)])
    }

    #[test]
    fn packets_take_the_fewest_links() {
        assert_eq!(chain().links_between(0, 3), Some(vec![6]));
        assert_eq!(chain().links_between(3, 0), Some(vec![5, 3, 1]));
        assert_eq!(chain().links_between(0, 2), Some(vec![0, 2]));
    }

    #[test]
    fn a_detour_overrides_the_shortest_route() {
        let mut routes = chain();
        routes.detour(0, 3, 0);
        assert_eq!(routes.links_between(0, 3), Some(vec![0, 2, 4]));
    }

    #[test]
    fn there_is_no_route_without_links_or_through_a_loop() {
        let routes = Routes::shortest(3, &[(0, 1)]);
        assert_eq!(
            (routes.links_between(1, 0), routes.links_between(0, 2), routes.links_between(2, 2)),
            (None, None, Some(vec![]))
        );
        let mut circle = chain();
        circle.detour(1, 3, 1);
        circle.detour(0, 3, 0);
        assert_eq!(circle.links_between(0, 3), None);
    }
}
