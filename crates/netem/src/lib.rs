//! Sans-IO models of links, queues and impairments.
