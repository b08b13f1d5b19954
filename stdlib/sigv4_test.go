package stdlib

import (
	"strings"
	"testing"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// The documentation of AWS has most of these requests, and their signatures, as examples.
func TestSignaturesOfAWS(t *testing.T) {
	call := library(t, "@std//sigv4.star")
	const bucket = "https://examplebucket.s3.amazonaws.com/"
	dict := func(pairs ...string) *starlark.Dict {
		d := starlark.NewDict(len(pairs) / 2)
		for i := 0; i < len(pairs); i += 2 {
			if err := d.SetKey(starlark.String(pairs[i]), starlark.String(pairs[i+1])); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	for _, tt := range []struct {
		method, url, service, body string
		headers                    *starlark.Dict
		want                       string
	}{
		{"GET", bucket + "test.txt", "s3", "", dict("Range", "bytes=0-9"), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", bucket + "test%24file.text", "s3", "Welcome to Amazon S3.", dict("Date", "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class", "REDUCED_REDUNDANCY"), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"GET", bucket + "?lifecycle", "s3", "", dict(), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"GET", bucket + "?prefix=J&max-keys=2", "s3", "", dict(), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
		// These two are not of AWS: in a query / is encoded, and pairs go by their names.
		{"GET", bucket + "?prefix=logs/2026/&a-b=1&a=2", "s3", "", dict(),
			"f2af6c77990be180e98422cc5101c7d561d1fdbde45893569a219e37e4a72d55"},
		{"GET", bucket + "?prefix=logs%2F2026%2F&a=2&a-b=1", "s3", "", dict(),
			"f2af6c77990be180e98422cc5101c7d561d1fdbde45893569a219e37e4a72d55"},
		{"GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", "iam", "", dict("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"},
	} {
		id, key, at := "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
		if tt.service == "iam" {
			id, key, at = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
		}
		got, err := call("sign", starlark.String(tt.method), starlark.String(tt.url), starlark.String(id), starlark.String(key), starlark.String("us-east-1"),
			starlark.String(tt.service), starlark.String(tt.body), tt.headers, starlark.None, startime.Time(at))
		if err != nil {
			t.Fatalf("%s %s: %v", tt.method, tt.url, err)
		}
		header, _, err := got.(*starlark.Dict).Get(starlark.String("Authorization"))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(header.(starlark.String)); !strings.HasSuffix(text, ",Signature="+tt.want) {
			t.Errorf("%s %s: got %s, want the signature %s", tt.method, tt.url, text, tt.want)
		}
	}
}
