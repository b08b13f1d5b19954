package effect

// Ask is a question to the API server: a create that it keeps nothing of, and whose answer is the result.
type Ask struct {
	// Ref is the kind of the question, and the namespace of kinds that have one; of a token it is the ServiceAccount.
	Ref Ref
	// Subresource is "token", or "".
	Subresource string
	// Object is the question.
	Object map[string]any
}

// String names the question: "SubjectAccessReview", "a token of ServiceAccount web/a".
func (a Ask) String() string {
	if a.Subresource != "" {
		return "a " + a.Subresource + " of " + a.Ref.String()
	}
	return a.Ref.String()
}
