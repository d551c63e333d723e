// Package app puts Clarify's parts together in one process: the configuration file, the order in which parts start and
// stop, and the demo that `clarify dev` runs.
//
// Parts start from the log outwards (server, bus, broker, channels, pages) and stop in the opposite order, so that nobody
// is let in who could not be answered. Each step of the way down is named, and its error says so.
package app
