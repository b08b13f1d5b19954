package effect

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Hosts are the hosts that requests of one module may go to: module(http = […]).
type Hosts []Host

// Host is one entry of [Hosts]: a name, a name with a wildcard, an address or a range
// of addresses, with or without a port.
type Host struct {
	text string
	// name is in lower case; "*.example.com" is suffix ".example.com".
	name, suffix string
	ranges       netip.Prefix
	port         uint16 // 0: any
	// named: somebody has written the name who may mean a private network, see [FoundText].
	named bool
}

// maxHosts bounds the list, and maxHostName is what DNS allows.
const (
	maxHosts    = 100
	maxHostName = 253
)

// ParseHosts reads the entries: "api.example.com", "*.example.com" (any name below), "10.0.0.0/8", "10.1.2.3",
// "fd00::/8", each with ":8080" for that port only. IPv6 takes brackets before a port: "[fd00::1]:8080".
func ParseHosts(entries []string) (Hosts, error) {
	if len(entries) > maxHosts {
		return nil, fmt.Errorf("%d hosts are more than %d", len(entries), maxHosts)
	}
	var out Hosts
	for i, text := range entries {
		h, err := parseHost(text)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, h)
	}
	return out, nil
}

func parseHost(text string) (Host, error) {
	h := Host{text: text}
	if len(text) > maxHostName+len(":65535") {
		return h, errors.New("is too long for a host")
	}
	bad := func(why string) (Host, error) { return h, fmt.Errorf("%q: %s", text, why) }
	if strings.Contains(text, "://") {
		return bad(`write the host alone, without "https://"`)
	}
	rest := text
	if port, found := portOf(text); found {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad("the port must be 1 to 65535")
		}
		h.port, rest = uint16(n), strings.TrimSuffix(text, ":"+port)
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")
	if addr, err := netip.ParseAddr(bare); err == nil {
		if addr.Zone() != "" {
			return bad("an address with a zone means nothing here")
		}
		h.ranges = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		return h, nil
	}
	if strings.Contains(rest, "/") {
		prefix, err := netip.ParsePrefix(bare)
		switch {
		case err != nil || prefix.Addr().Is4In6():
			return bad(`is no range of addresses, as "10.0.0.0/8"; a path does not belong here`)
		case prefix != prefix.Masked():
			return bad(fmt.Sprintf("the address has bits past the range; %s is meant", prefix.Masked()))
		}
		h.ranges = prefix
		return h, nil
	}
	name := strings.ToLower(rest)
	if below, ok := strings.CutPrefix(name, "*."); ok {
		if !strings.Contains(below, ".") {
			return bad(`a wildcard stands for names below a domain, as "*.example.com"`)
		}
		h.suffix, name = "."+below, below
	} else {
		h.name = name
	}
	if !isHostName(name) {
		return bad(`is no host; write "api.example.com", "*.example.com", "10.0.0.0/8" or one with a port, ":8080"`)
	}
	return h, nil
}

// portOf cuts the port off an entry. The colons of IPv6 are none before a port, unless
// there are brackets, or the length of a range.
func portOf(text string) (string, bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", false
	}
	before := text[:at]
	if strings.Contains(before, ":") && !strings.HasSuffix(before, "]") && !strings.Contains(before, "/") {
		return "", false
	}
	if strings.HasPrefix(text, "[") && !strings.HasSuffix(before, "]") && !strings.Contains(before, "/") {
		return "", false
	}
	return text[at+1:], true
}

// isHostName knows what DNS takes in the letters of ASCII, and _, which some use.
func isHostName(name string) bool {
	if name == "" || len(name) > maxHostName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, b := range []byte(label) {
			if (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' && b != '_' {
				return false
			}
		}
	}
	return true
}

// Allow reports whether the host of a URL, a name or an address, is listed.
func (hs Hosts) Allow(host string, port uint16) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return hs.lists(addr, port)
	}
	host = CanonicalHost(host)
	return isHostName(host) && slices.ContainsFunc(hs, func(h Host) bool {
		return (h.port == 0 || h.port == port) && h.names(host)
	})
}

// AllowAddress reports whether a connection to host, which [Hosts.Allow] has allowed, may go to this address of it. An
// address of a private network, of this machine or of the link must be listed itself, or a range that holds it;
// "localhost" lists those of this machine for that name.
func (hs Hosts) AllowAddress(host string, addr netip.Addr, port uint16) bool {
	addr = addr.Unmap().WithZone("")
	if _, err := netip.ParseAddr(host); err != nil && !special(addr) {
		return true
	}
	if hs.lists(addr, port) {
		return true
	}
	return hs.leads(host, addr, port) || CanonicalHost(host) == "localhost" && addr.IsLoopback()
}

// lists says whether a range holds the address.
func (hs Hosts) lists(addr netip.Addr, port uint16) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(hs, func(h Host) bool {
		return (h.port == 0 || h.port == port) && h.ranges.IsValid() && h.ranges.Contains(addr)
	})
}

func (h Host) names(host string) bool {
	if h.suffix != "" {
		return len(host) > len(h.suffix) && strings.HasSuffix(host, h.suffix)
	}
	return h.name != "" && h.name == host
}

// CanonicalHost is a host name in lower case without the dot that may end it.
func CanonicalHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// specials are the addresses, beside those that netip knows as private, loopback,
// link-local and multicast, that are not of the public network, or stand for others.
var specials = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this machine, on some systems
	netip.MustParsePrefix("100.64.0.0/10"),    // behind a carrier's NAT
	netip.MustParsePrefix("192.0.0.0/24"),     // of protocols
	netip.MustParsePrefix("198.18.0.0/15"),    // of measurements
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, and broadcast
	netip.MustParsePrefix("::/96"),            // IPv4, as it was once written
	netip.MustParsePrefix("64:ff9b::/96"),     // NAT64: any address of IPv4
	netip.MustParsePrefix("64:ff9b:1::/48"),   // NAT64, local
	netip.MustParsePrefix("2001::/32"),        // Teredo: any address of IPv4
	netip.MustParsePrefix("2002::/16"),        // 6to4: any address of IPv4
	netip.MustParsePrefix("fec0::/10"),        // site-local, as it was once
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's own services, from within
}

// special says whether the address is none of the public network.
func special(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(specials[:], func(p netip.Prefix) bool { return p.Contains(addr) })
}

// String returns the entry as it was written.
func (h Host) String() string { return h.text }

// MarshalText returns the entry as it was written.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.text), nil }

// UnmarshalText reads an entry.
func (h *Host) UnmarshalText(text []byte) (err error) {
	name, named := strings.CutPrefix(string(text), namedPrefix)
	*h, err = parseHost(name)
	h.text, h.named = string(text), named
	return err
}
