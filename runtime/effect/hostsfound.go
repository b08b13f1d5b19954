package effect

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Hosts that a module does not list itself: somebody else has written them, into an object or into the user's config.

// namedPrefix begins the text of a host whose name may lead to a private network.
const namedPrefix = "named "

// FoundAddress is the address of an object. False: it is none, or one that must be listed by name.
func FoundAddress(addr string, port uint16) (Host, bool) {
	at, err := netip.ParseAddr(addr)
	if err != nil || never(at.Unmap().WithZone("")) {
		return Host{}, false
	}
	at = at.Unmap().WithZone("")
	return Host{text: withPort(at.String(), port), ranges: netip.PrefixFrom(at, at.BitLen()), port: port}, true
}

// FoundName is a name that the cluster itself gives, such as that of a Service.
func FoundName(name string, port uint16) (Host, bool) {
	h, err := parseHost(withPort(name, port))
	return h, err == nil && h.name != ""
}

// FoundText is a host as people write one: a URL, or a name or an address, with or without a port. A name may lead to
// a private network, for that is what was meant; to this machine and to the link it may not.
func FoundText(text string) (Host, error) {
	at := strings.TrimSpace(text)
	if strings.Contains(at, "://") {
		u, err := url.Parse(at)
		if err != nil || u.Hostname() == "" {
			return Host{}, errors.New("it is no URL with a host")
		}
		port, _ := strconv.ParseUint(u.Port(), 10, 16)
		if port == 0 {
			port = map[string]uint64{"http": 80, "https": 443}[u.Scheme]
		}
		at = withPort(u.Hostname(), uint16(port))
	}
	h, err := parseHost(at)
	switch {
	case err != nil:
		return Host{}, errors.New("it is no host, as api.example.com, 10.1.2.3:8080 or https://api.example.com/path")
	case h.suffix != "" || h.ranges.IsValid() && !h.ranges.IsSingleIP():
		return Host{}, errors.New("it is more than one host")
	case h.ranges.IsValid() && never(h.ranges.Addr()):
		return Host{}, fmt.Errorf("%s is an address of this machine or of the link; only module(http = […]) can name it", h.ranges.Addr())
	case h.name == "localhost":
		return Host{}, errors.New("localhost is this machine; only module(http = […]) can name it")
	}
	if h.name != "" {
		h.named, h.text = true, namedPrefix+h.text
	}
	return h, nil
}

func withPort(host string, port uint16) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == 0 {
		return strings.Trim(host, "[]")
	}
	return host + ":" + strconv.Itoa(int(port))
}

// shared may be the network of Pods.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// metadata are those at which clouds tell machines of their secrets, beside those of the link.
var metadata = [...]netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// never says that only module(http = […]) itself can list an address: it is of this machine, of the
// link, or stands for another one.
func never(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || slices.Contains(metadata[:], addr) {
		return true
	}
	return slices.ContainsFunc(specials[:], func(p netip.Prefix) bool { return p != shared && p.Contains(addr) })
}

// leads says whether a name that somebody has written may lead to an address.
func (hs Hosts) leads(host string, addr netip.Addr, port uint16) bool {
	host = CanonicalHost(host)
	return !never(addr) && slices.ContainsFunc(hs, func(h Host) bool {
		return h.named && (h.port == 0 || h.port == port) && h.names(host)
	})
}
