package reconcile

// Write is one write about a child.
type Write struct {
	ID
	// Digest is that of the part, "" of a child that is not wanted.
	Digest string
	// Put says that somebody may have changed the child: it is put back as it was.
	Put bool
	// By is who had changed the child, which is put right; "" of any other write.
	By string
}
