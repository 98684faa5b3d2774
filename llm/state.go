package llm

// readState sets Acts and Stateful.
func (r *Request) readState() {
	switch r.Family {
	case Responses:
		r.Acts = r.says("background") || r.says("conversation")
		r.Stateful = r.Acts || r.says("previous_response_id") || r.remoteTools()
	case Anthropic:
		r.Stateful = r.says("container") || r.says("mcp_servers")
	}
}

// says reports whether the body has a member that is neither null nor false.
func (r *Request) says(name string) bool {
	n := r.doc.member(0, name)
	return n != 0 && r.doc.kind(n) != kindNull && r.doc.kind(n) != kindFalse
}

// remoteTools reports whether the provider may call tools of other servers.
func (r *Request) remoteTools() bool {
	n := r.at[fTools]
	if n == 0 {
		return false
	}
	for _, tool := range r.doc.elements(n) {
		if r.doc.says(tool, "type") == "mcp" {
			return true
		}
	}
	return false
}
