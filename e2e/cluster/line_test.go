package cluster

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// dialLine makes a line to an address, and a connection by it. The other end is what listens there.
func dialLine(t *testing.T, address string, delay time.Duration) (*Line, net.Conn) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["there"] = &clientcmdapi.Cluster{Server: "https://" + address}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	l, _ := NewLongLine(t, file, delay)
	conn, err := net.Dial("tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return l, conn
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// The bytes of a connection come whole and in order, later than without the line.
func TestLongLinePassesBytesOn(t *testing.T) {
	ln := listen(t)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn) // an echo
	}()
	const delay = 20 * time.Millisecond
	_, conn := dialLine(t, ln.Addr().String(), delay)
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i * i >> 8)
	}
	began := time.Now()
	go func() { _, _ = conn.Write(want) }()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d: %v", n, len(want), err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("they took %s, less than %s", took, delay)
	}
}

// A line that is cut takes its connections with it.
func TestCutEndsConnections(t *testing.T) {
	ln := listen(t)
	l, conn := dialLine(t, ln.Addr().String(), time.Millisecond)
	if _, err := ln.Accept(); err != nil {
		t.Fatal(err)
	}
	l.Cut()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
}
