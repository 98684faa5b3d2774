package reading

import "strings"

// A field is what a value in an answer means, whatever its family calls it.
type field uint8

const (
	none field = iota

	// What the caller wants.
	text     // of the answer
	thought  // what the model thinks before it answers
	tool     // arguments of a call of a tool
	media    // audio or pictures
	refusal  // the model says that it will not answer
	rich     // the answer holds what plain text cannot say
	delta    // one of the above: the kind of the event says which
	partText // text or a thought: what stands beside it says which
	partThought
	partEnd

	// What kind of thing this is.
	kind      // of an event, or of an answer
	blockKind // of a block in the answer
	blockEnd
	index    // of one of several answers
	sequence // of an event

	// How the answer ends.
	finish
	status     // of a Response, which says how it ended
	incomplete // why a Response ended early
	blocked    // why the prompt was not answered at all

	// What was used, in tokens.
	input         // apart from what the cache saved or took
	inputAll      // with it
	inputMore     // beside the input
	output        // apart from thoughts, where those are counted by themselves
	outputMore    // beside the output
	total         // of inputAll and all of the output
	cacheRead     // beside the input
	cacheWrite    // beside the input
	cacheHour     // of cacheWrite: for an hour
	cacheReadOf   // of inputAll
	cacheWriteOf  // of inputAll
	meteredInput  // the four as Bedrock meters them
	meteredOutput //
	meteredRead   //
	meteredWrite  //

	// What went wrong.
	errCode
	errType
	errStatus
	errMessage
	errRetry
	errQuota
	looseCode // an error only if the kind, or the status, says so
	looseMessage
	looseType

	tier  // the service tier that served the call
	speed // it is fast, for a price
	geo   // where it was served, for a price

	model
	id
	choiceEnd
	encoded // an answer in base64, inside of Bedrock's own words
)

// A node is a place in a JSON text that was reached by certain keys. Arrays leave
// no trace: their elements stand where the array does.
type node struct {
	names []string
	kids  []*node
	leaf  field // what a string, number or boolean means that stands here
	end   field // is said when an object that stands here ends
}

func (n *node) kid(key []byte) *node {
	if n == nil {
		return nil
	}
	for i, name := range n.names {
		if name == string(key) {
			return n.kids[i]
		}
	}
	return nil
}

// tree makes one node of paths such as "choices.delta.content", each with what it
// means. A path that ends in {} means the end of an object.
func tree(tables ...map[string]field) *node {
	root := new(node)
	for _, t := range tables {
		for path, f := range t {
			root.add(path, f)
		}
	}
	return root
}

func (n *node) add(path string, f field) {
	path, end := strings.CutSuffix(path, "{}")
	for name := range strings.SplitSeq(path, ".") {
		n = n.grow(name)
	}
	if end {
		n.end = f
	} else {
		n.leaf = f
	}
}

func (n *node) grow(name string) *node {
	if kid := n.kid([]byte(name)); kid != nil {
		return kid
	}
	kid := new(node)
	n.names, n.kids = append(n.names, name), append(n.kids, kid)
	return kid
}
