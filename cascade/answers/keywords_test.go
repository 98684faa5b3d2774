package answers

import (
	"strings"
	"testing"
)

func TestQuestionWithAllKeywordsMatchesWhateverItsLength(t *testing.T) {
	const file = `answers:
  - {id: jcb, keywords: [JCB, cards], answer: Yes.}
  - {id: hours, keywords: [opening hours, closed], answer: From nine to five.}
  - {id: refund, keywords: [refund, exchange], answer: Within 30 days.}
  - {id: visa, keywords: {en: [visa card], de: [Visa Karte]}, answer: {en: "Yes.", de: "Ja."}}
`
	b := new(Book)
	if err := b.Parse("answers.yaml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("I ordered green shoes yesterday and my neighbor received another parcel instead. ", 12)
	for question, id := range map[string]string{
		"do you take JCB cards?": "jcb",
		"Hello, we are travelling from Osaka next week with our parents, do you take JCB cards at your restaurant?": "jcb",
		long + "Do you take JCB cards?": "jcb",
		"My sister asked whether your opening hours differ on the day after Christmas this year": "hours",
		"can I have a refund or an exchange for the blue lamp that my uncle bought in March":     "refund",
		"Nehmen Sie im Restaurant am Hafen eigentlich auch meine neue Visa Karte an?":            "visa",
		"do you take cards of our sports club at the entrance of the northern hall?":             "",
		"my neighbor told me that she never had a refund for the blue lamp with the torn cable":  "",
	} {
		if m, ok := b.Find(question); ok != (id != "") || m.ID != id {
			t.Errorf("%.80q: found %q at %v, want %q", question, m.ID, m.Confidence, id)
		}
	}
}
