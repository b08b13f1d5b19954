// Package webhook answers the API server: it reviews and changes objects for
// k8s.validate and k8s.mutate, and converts them for k8s.convert.
//
//	certs.go, store.go   an own authority and a serving certificate, in a Secret
//	files.go             or a certificate that somebody mounts
//	serving.go           listens, and shows the certificate as soon as there is one
//	server.go, review.go, conversion.go, patch.go   what comes in over TLS, and goes out
//	names.go, objects.go what the API server must know to ask: webhook configurations, CRDs
//	manager.go, apply.go keep all that as it should be
//	standby.go, forward.go   answer without writing, before the Lease is held
//	detach.go            takes it away
//
// Which hook answers, and what, is decided elsewhere: a request becomes a
// builtins.Request, which Options.Answer answers.
package webhook
