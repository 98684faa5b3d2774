package answers

import (
	"strings"
	"testing"
)

// A Latin keyword matches a question in another script that contains it untranslated. A question about something else
// that only contains the keyword does not match.
func TestLatinKeywordsAreFoundInOtherScripts(t *testing.T) {
	for _, file := range []string{`
answers:
  - id: refund
    questions: {en: ["How do I get my money back?"], ru: ["Как вернуть деньги?"], ja: ["お金は戻りますか"]}
    keywords: [refund, 返金]
    answer: {en: "In five days.", ja: "5日です。"}
  - id: wifi
    questions: {en: ["Is there internet in the shop?"], ja: ["店内でインターネットは使えますか"]}
    keywords: [WiFi, USB-C]
    answer: {en: "Yes.", ja: "はい。"}
`, `
answers:
  - {id: refund, keywords: [refund], answer: In five days.}
  - {id: wifi, keywords: {en: [WiFi, USB-C]}, answer: "Yes."}
`} {
		b := new(Book)
		if err := b.Parse("answers.yaml", []byte(file)); err != nil {
			t.Fatal(err)
		}
		if m, _ := b.Find("Как сделать refund?"); strings.Contains(file, "ru:") && m.ID != "refund" {
			t.Errorf("Russian: %+v", m)
		}
		for question, want := range map[string]string{
			"refundしたいです":       "refund",
			"refundの方法を教えてください": "refund",
			"Refundはできますか？":     "refund",
			"ＲＥＦＵＮＤについて":        "refund",
			"WiFiはありますか":        "wifi",
			"USB-Cはありますか":       "wifi",
			"请问怎么refund":        "refund",
			"refund怎么办":         "refund",
			"refund 하고 싶어요":     "refund",
			"refund":            "refund",
			"明日の東京の天気と来週の会議の予定を、refundという名前の犬と散歩しながら考えています": "",
			"今日は良い天気ですね": "",
		} {
			m, ok := b.Find(question)
			if m.ID != want {
				t.Errorf("%s: %q (%v %.2f, %s), want %q", question, m.ID, ok, m.Confidence, m.Why, want)
			}
			if ok && strings.Contains(file, "ja:") && strings.ContainsAny(question, "はのでし") && m.Language != "ja" {
				t.Errorf("%s: answered in %s", question, m.Language)
			}
		}
	}
}
