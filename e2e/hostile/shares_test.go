package hostile

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// shares are modules that want all runs, all processors, the whole log, or to be asked for
// ever.
var shares = []attack{
	{name: "forty-queues", says: []string{"is one more than the 8 queues"}, files: map[string]string{
		"hooks/a.star": "def run(ctx):\n    pass\n\n[hook(run, name = \"h%d\" % i, queue = \"q%d\" % i, on = [startup()]) for i in range(40)]\n"}},
	{name: "long-timeout", says: []string{"timeout: 1000h0m0s is not between 0 and"}, files: map[string]string{
		"hooks/a.star": "hook(lambda ctx: None, name = \"x\", on = [startup()], timeout = \"1000h\")\n"}},
	{name: "enabled-loops", says: []string{"steps, the limit"}, files: map[string]string{
		"module.star": "def enabled():\n    return len([0 for i in range(10000000) for j in range(10000000)]) > 0\n\nmodule(enabled = True)\n"}},
	{name: "enabled-slow", says: []string{"5s, the time limit"}, files: map[string]string{
		"module.star": "def enabled():\n    return len([hash.sha256(\"x\" * (1 << 24)) for i in range(10000000)]) > 0\n\nmodule(enabled = True)\n"}},
	{name: "enabled-sorts", says: []string{"5s, the time limit"}, files: map[string]string{
		"module.star": growing + "def enabled():\n    return len(sorted([grow(6, (0,), lambda x: x * 10)] * 1000000)) > 0\n\nmodule(enabled = True)\n"}},
	{name: "chart-values-loop", says: []string{"steps, the limit"}, files: map[string]string{
		"module.star":      "def chart_values(v):\n    return {\"a\": [0 for i in range(10000000) for j in range(10000000)]}\n\nmodule(enabled = True)\n",
		"templates/a.yaml": "{}\n"}},
	{name: "short-runs", files: map[string]string{"hooks/a.star": "def run(ctx):\n    requeue(\"1ms\")\n    [i for i in range(200000)]\n\n" +
		"[hook(run, name = \"h%d\" % i, queue = \"q%d\" % (i % 8), on = [startup()]) for i in range(40)]\n"}},
	{name: "logs-again", says: []string{"shouted"}, files: map[string]string{"hooks/a.star": "def run(ctx):\n    for i in range(1000):\n        log.info(\"x\" * 900)\n" +
		"    fail(\"shouted\", retry_after = \"1ms\")\n\nhook(run, on = [startup()])\n"}},
}

// silent is a server that takes requests and never answers.
type silent struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newSilent(t *testing.T) *silent {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silent{Listener: ln}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, conn := range s.conns {
			conn.Close()
		}
	})
	return s
}

func (s *silent) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Hooks that wait for a server that never answers, as many as five modules may run, leave
// room for the runs of others, and the process stops without them.
func TestSilentServer(t *testing.T) {
	server := newSilent(t)
	a := newArena(t)
	a.start()
	beats := a.beat(a.waitBeat())
	for i := range 5 {
		a.write(map[string]string{
			fmt.Sprintf("waits-%d/module.star", i): fmt.Sprintf("module(enabled = True, http = [%q])\n", server.Addr()),
			fmt.Sprintf("waits-%d/hooks/a.star", i): fmt.Sprintf("def run(ctx):\n    http.get(\"http://%s/\", timeout = \"5m\")\n\n", server.Addr()) +
				"[hook(run, name = \"h%d\" % i, queue = \"q%d\" % (i % 8), timeout = \"10m\", on = [startup()]) for i in range(40)]\n",
		})
	}
	// Those of a module that is new begin on by one.
	a.eventually("most places of all modules are taken", func() error {
		if n := server.taken(); n < 32 {
			return fmt.Errorf("the server has %d requests", n)
		}
		return nil
	})
	beats.goOn(5)
	beats.end()
	a.stop()
}

// Requests that come a byte at a time, without a signature, leave room for others.
func TestSlowRequests(t *testing.T) {
	a := newArena(t)
	a.args = []string{"--receive-address", "127.0.0.1:0"}
	for _, name := range []string{"slow", "quick"} {
		a.write(map[string]string{
			name + "/module.star":  "module(enabled = True)\n",
			name + "/hooks/a.star": fmt.Sprintf("hook(lambda ctx: reply(200, \"taken\"), name = \"x\", on = [http.receive(%q, public = True, max_bytes = 1 << 20)])\n", "/"+name),
		})
	}
	a.start()
	beats := a.beat(a.waitBeat())
	take := func() error {
		address := a.receives()
		if address == "" {
			return fmt.Errorf("it does not receive yet")
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/quick", strings.NewReader("{}"))
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the answer is %s", resp.Status)
		}
		return nil
	}
	a.eventually("the quick path answers", take)
	for range 70 {
		conn, err := net.Dial("tcp", a.receives())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if err := take(); err != nil {
			t.Errorf("beside slow requests: %v", err)
		}
	}
	beats.goOn(2)
	beats.end()
	a.stop()
}
