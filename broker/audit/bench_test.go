package audit

import "testing"

func BenchmarkRedactAndLink(b *testing.B) {
	log := history(1, 400)
	for b.Loop() {
		recorded(b, log)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(log)), "ns/record")
}

func BenchmarkVerify(b *testing.B) {
	all := recorded(b, history(1, 400))
	for b.Loop() {
		if !Verify(each(all)).OK() {
			b.Fatal("false alarm")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/record")
}
