"""Texts of many kinds, with the tokens that OpenAI's `o200k_base` has for them, counted once with the `bpe-openai` package."""

import json
import random
from typing import NamedTuple

__all__ = ["BADLY_KNOWN", "TEXTS", "Sample"]


class Sample(NamedTuple):
    """A text and its number of `o200k_base` tokens."""

    text: str
    o200k: int


_dice = random.Random(7)
_rows = [
    {"id": 7_000 + 13 * i, "name": f"Anna{i}", "price": i * 1.37, "tags": ["a", "new"], "on": True} for i in range(60)
]
_hex = "".join(_dice.choice("0123456789abcdef") for _ in range(2000))
_log = "".join(
    f"2024-05-06T12:{i:02d}:07.{i * 13:03d}Z INFO [worker-{i % 7}] request 5f2c{i:04d}-9be1-4c{i:02d} took {i * 7}ms\n"
    for i in range(50)
)

TEXTS = {
    "prose": Sample(
        "The committee met on Tuesday to discuss whether the changes to the harbour would affect the fishing boats that leave "
        "before dawn. Nobody objected, although several members wondered aloud how the costs had grown so quickly. ",
        41,
    ),
    "code": Sample(
        "def total(rows: list[Row], *, currency: str = 'EUR') -> Decimal:\n"
        "    \"\"\"Return what all rows cost together.\"\"\"\n"
        "    return sum((row.price * row.amount for row in rows if row.currency == currency), Decimal(0))\n\n",
        51,
    ),
    "json": Sample(json.dumps(_rows), 2258),
    "indented json": Sample(json.dumps(_rows, indent=2), 3099),
    "log": Sample(_log, 2100),
    "hexadecimal": Sample(_hex, 1127),
    "markup": Sample('<div class="col-md-6"><a href="https://example.com/a?id=42">Click here</a><span>x</span></div>\n', 32),
    "traceback": Sample('  File "/srv/app/orders/views.py", line 212, in create\n    return self._inner(value, key=key)\n', 27),
    "Chinese": Sample("委员会于星期二召开会议，讨论港口改造方案是否会影响黎明前出海的渔船。工程师们解释说，材料价格上涨是主要原因。", 39),  # noqa: RUF001  as it is written
    "Japanese": Sample("委員会は火曜日に会合を開き、港の改修計画が夜明け前に出港する漁船に影響を与えるかどうかを話し合いました。", 46),
    "Korean": Sample("위원회는 화요일에 모여 항구 변경 계획이 새벽에 출항하는 어선에 영향을 미칠지 논의했다. ", 31),
    "Hindi": Sample("समिति की बैठक मंगलवार को हुई जिसमें इस बात पर चर्चा की गई कि बंदरगाह में बदलाव होंगे या नहीं। ", 26),
    "Thai": Sample("คณะกรรมการประชุมเมื่อวันอังคารเพื่อหารือว่าการเปลี่ยนแปลงท่าเรือจะส่งผลกระทบต่อเรือประมงหรือไม่ ", 41),
    "Arabic": Sample("اجتمعت اللجنة يوم الثلاثاء لمناقشة ما إذا كانت التغييرات المقترحة في الميناء ستؤثر على قوارب الصيد. ", 33),
    "Hebrew": Sample("הוועדה נפגשה ביום שלישי כדי לדון בשאלה האם השינויים המוצעים בנמל ישפיעו על סירות הדיג. ", 34),
    "Russian": Sample("Комитет собрался во вторник, чтобы обсудить, повлияют ли изменения в гавани на рыбацкие лодки. ", 31),
    "Greek": Sample("Η επιτροπή συνεδρίασε την Τρίτη για να συζητήσει αν οι αλλαγές στο λιμάνι θα επηρεάσουν τα σκάφη. ", 36),  # noqa: RUF001  as it is written
    "German": Sample("Der Ausschuss trat am Dienstag zusammen, um zu erörtern, ob die Änderungen die Fischerboote beeinträchtigen. ", 26),
    "Polish": Sample("Komitet spotkał się we wtorek, aby omówić, czy zmiany w porcie wpłyną na łodzie rybackie. ", 34),
    "Vietnamese": Sample("Ủy ban đã họp vào thứ Ba để thảo luận xem những thay đổi đối với bến cảng có ảnh hưởng đến tàu cá hay không. ", 34),
    "emoji": Sample("😀😂🎉🚀🐍🔥🙈🍕🌍🧠🦀💡", 23),
    "joined emoji": Sample("👩‍💻👨‍👩‍👧‍👦🏳️‍🌈🇳🇴🇩🇪👍🏽", 33),
    "emoji in text": Sample("Done ✅ deployed 🚀 to prod, 3 tests failed ❌ see logs 📜. ", 20),
    "Han in JSON": Sample('{"编号": 12, "名称": "上海港口", "价格": 12.5}, ', 23),
}  # fmt: skip

BADLY_KNOWN = {
    "base64": Sample("".join(_dice.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") for _ in range(2000)), 1357),
    "Braille": Sample("".join(chr(0x2800 + _dice.randrange(256)) for _ in range(300)), 892),
    "rare Han": Sample("".join(chr(0x3400 + _dice.randrange(6000)) for _ in range(300)), 893),
}  # fmt: skip
