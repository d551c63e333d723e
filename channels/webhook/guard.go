package webhook

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// errBlocked is returned by the dialer for an address that a webhook must not reach.
var errBlocked = errors.New("the address is not a public one")

// special are the ranges that lead back into one's own network or nowhere: RFC 6890 and the IANA special-purpose registries,
// and the IPv6 forms that wrap an IPv4 address.
func special() []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/96",        // unspecified, loopback and IPv4-compatible
		"64:ff9b::/96", // NAT64
		"64:ff9b:1::/48",
		"100::/64",  // discard
		"2001::/23", // Teredo, ORCHID and other protocol assignments
		"2001:db8::/32",
		"2002::/16", // 6to4
		"3fff::/20",
		"5f00::/16",
		"fc00::/7",
		"fe80::/10",
		"fec0::/10", // site-local, deprecated
		"ff00::/8",
	} {
		ranges = append(ranges, netip.MustParsePrefix(text))
	}
	return ranges
}

// publicOnly is a net.Dialer's Control: it sees the address that is about to be dialled, so that neither a name that
// resolves differently a moment later nor an odd spelling gets around it.
func publicOnly(ranges []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil || (network != "tcp4" && network != "tcp6") {
			return errBlocked
		}
		ip, err := netip.ParseAddr(host)
		if err != nil || !public(ip, ranges) {
			return errBlocked
		}
		return nil
	}
}

func public(ip netip.Addr, ranges []netip.Prefix) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = ip.Unmap()
	for _, r := range ranges {
		if r.Contains(ip) {
			return false
		}
	}
	return ip.IsGlobalUnicast()
}
