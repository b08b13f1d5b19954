package main

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// until runs a command until its output is like pattern, and shows the last output.
func until(pattern, name string, args []string) int {
	like := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, _ := exec.Command(name, args...).CombinedOutput()
		if found := like.Match(out); found || time.Now().After(end) {
			os.Stdout.Write(out)
			if found {
				return 0
			}
			fmt.Fprintln(os.Stderr, "never like", pattern)
			return 1
		}
	}
}

// onScreen runs a command on a terminal and shows what it writes there, line by line. A signal
// to this process is Ctrl-C.
func onScreen(name string, args []string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for range signals {
			_, _ = screen.Write([]byte{3})
		}
	}()
	_, _ = io.Copy(os.Stdout, screen) // ends with an error once the terminal is gone
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// webGet shows what is at a URL. The client shows the certificate of a folder; "": none.
func webGet(url, dir string) int {
	config := &tls.Config{InsecureSkipVerify: true}
	if dir != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
	res, err := client.Get(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	_, _ = io.Copy(os.Stdout, res.Body)
	return 0
}

// gunzipped shows what stdin holds, as a profile is packed.
func gunzipped() int {
	in, err := gzip.NewReader(os.Stdin)
	if err == nil {
		_, err = io.Copy(os.Stdout, in)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// writeCertificate makes a folder with a certificate that is its own authority, and its key.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// freePort keeps a port that nobody listens at in a variable of the script.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(ln.Addr().String())
	ts.Check(err)
	ts.Check(ln.Close())
	ts.Setenv(args[0], port)
}
