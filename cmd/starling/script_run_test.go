package main

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/starling-operator/starling/runtime/pki"
)

// until runs a command until its output is like pattern, and shows the last output.
func until(pattern, name string, args []string) int {
	like := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
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
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: time.Minute}
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
	cert, err := pki.Issue(&x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, nil)
	if err != nil {
		return err
	}
	crt, key, err := pki.PEM(cert)
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), crt, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600),
	)
}

// freePort keeps a port that nobody listens at in a variable of the script. The system gives it to no connection:
// else another process might have it by the time it is wanted.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	for {
		port := strconv.Itoa(20_000 + rand.N(10_000))
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			ts.Check(ln.Close())
			ts.Setenv(args[0], port)
			return
		}
	}
}
