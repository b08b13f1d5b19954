package reconcile

// Write is one write about a child.
type Write struct {
	ID
	// By is who had changed the child, which is put right; "" of any other write.
	By string
}
