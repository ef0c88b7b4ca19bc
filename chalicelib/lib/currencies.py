"""The currencies that a workspace may have, with their digits and the countries that use them.

Amounts are integers in minor units: kopecks, pence, yen, fils. The digits are those of ISO 4217
(list one, https://www.six-group.com/en/products-services/financial-information/data-standards.html,
as of November 2026). CLDR, and so Babel, has fewer digits for 13 of them, as it shows what is in
circulation. Countries have the currency of CLDR 48 (``supplementalData``, ``currencyData``), or the
national one where another is legal tender, too.
"""

from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import Final

RUB: Final = "RUB"
"""The currency of a workspace by default, and of everything that the platform charges."""

_TABLE = """
AED 2 AE
AFN 2 AF
ALL 2 AL
AMD 2 AM
AOA 2 AO
ARS 2 AR
AUD 2 AU CC CX KI NF NR TV
AWG 2 AW
AZN 2 AZ
BAM 2 BA
BBD 2 BB
BDT 2 BD
BHD 3 BH
BIF 0 BI
BMD 2 BM
BND 2 BN
BOB 2 BO
BRL 2 BR
BSD 2 BS
BTN 2 BT
BWP 2 BW
BYN 2 BY
BZD 2 BZ
CAD 2 CA
CDF 2 CD
CHF 2 CH LI
CLP 0 CL
CNY 2 CN
COP 2 CO
CRC 2 CR
CUP 2 CU
CVE 2 CV
CZK 2 CZ
DJF 0 DJ
DKK 2 DK FO GL
DOP 2 DO
DZD 2 DZ
EGP 2 EG
ERN 2 ER
ETB 2 ET
EUR 2 AD AT AX BE BG BL CY DE EE ES FI FR GF GP GR HR IE IT LT LU LV MC ME MF MQ MT NL PM PT RE SI SK SM VA XK YT
FJD 2 FJ
FKP 2 FK
GBP 2 GB GG IM JE TA
GEL 2 GE
GHS 2 GH
GIP 2 GI
GMD 2 GM
GNF 0 GN
GTQ 2 GT
GYD 2 GY
HKD 2 HK
HNL 2 HN
HTG 2 HT
HUF 2 HU
IDR 2 ID
ILS 2 IL PS
INR 2 IN
IQD 3 IQ
IRR 2 IR
ISK 0 IS
JMD 2 JM
JOD 3 JO
JPY 0 JP
KES 2 KE
KGS 2 KG
KHR 2 KH
KMF 0 KM
KPW 2 KP
KRW 0 KR
KWD 3 KW
KYD 2 KY
KZT 2 KZ
LAK 2 LA
LBP 2 LB
LKR 2 LK
LRD 2 LR
LSL 2 LS
LYD 3 LY
MAD 2 EH MA
MDL 2 MD
MGA 2 MG
MKD 2 MK
MMK 2 MM
MNT 2 MN
MOP 2 MO
MRU 2 MR
MUR 2 MU
MVR 2 MV
MWK 2 MW
MXN 2 MX
MYR 2 MY
MZN 2 MZ
NAD 2 NA
NGN 2 NG
NIO 2 NI
NOK 2 NO SJ
NPR 2 NP
NZD 2 CK NU NZ TK
OMR 3 OM
PAB 2 PA
PEN 2 PE
PGK 2 PG
PHP 2 PH
PKR 2 PK
PLN 2 PL
PYG 0 PY
QAR 2 QA
RON 2 RO
RSD 2 RS
RUB 2 RU
RWF 0 RW
SAR 2 SA
SBD 2 SB
SCR 2 SC
SDG 2 SD
SEK 2 SE
SGD 2 SG
SHP 2 AC SH
SLE 2 SL
SOS 2 SO
SRD 2 SR
SSP 2 SS
STN 2 ST
SYP 2 SY
SZL 2 SZ
THB 2 TH
TJS 2 TJ
TMT 2 TM
TND 3 TN
TOP 2 TO
TRY 2 TR
TTD 2 TT
TWD 2 TW
TZS 2 TZ
UAH 2 UA
UGX 0 UG
USD 2 AS BQ EC FM GU IO MH MP PR PW SV TC TL US VG VI ZW
UYU 2 UY
UZS 2 UZ
VES 2 VE
VND 0 VN
VUV 0 VU
WST 2 WS
XAF 0 CF CG CM GA GQ TD
XCD 2 AG AI DM GD KN LC MS VC
XCG 2 CW SX
XOF 0 BF BJ CI GW ML NE SN TG
XPF 0 NC PF WF
YER 2 YE
ZAR 2 ZA
ZMW 2 ZM
"""  # noqa: E501  a line for each currency

_LINES = [line.split() for line in _TABLE.strip().splitlines()]
DIGITS: Final = MappingProxyType({code: int(digits) for code, digits, *_ in _LINES})
"""Digits after the decimal point, by currency: all currencies that are offered."""
_BY_COUNTRY = {country: code for code, _, *countries in _LINES for country in countries}

# Signs that people write beside amounts, with the currencies that each may mean. The sign of
# another currency is never read as one's own.
_SIGNS: Final = {
    "$": "USD CAD AUD NZD SGD HKD TWD MXN ARS CLP COP UYU BSD BBD BMD BND BZD DOP FJD GYD JMD KYD "
    "LRD NAD SBD SRD TTD XCD",
    "£": "GBP GIP FKP SHP EGP LBP SDG SSP SYP",
    "€": "EUR",
    "¥": "JPY CNY",
    "円": "JPY",
    "元": "CNY",
    "₩": "KRW KPW",
    "₹": "INR",
    "₺": "TRY",
    "₴": "UAH",
    "₸": "KZT",
    "₾": "GEL",
    "₼": "AZN",
    "֏": "AMD",
    "₪": "ILS",
    "₫": "VND",
    "₱": "PHP CUP",
    "₦": "NGN",
    "₵": "GHS",
    "₡": "CRC",
    "₲": "PYG",
    "₮": "MNT",
    "₭": "LAK",
    "฿": "THB",
    "zł": "PLN",
    "kč": "CZK",
    "ft": "HUF",
    "kr": "SEK NOK DKK ISK",
    "fr.": "CHF",
    "lei": "RON MDL",
    "r$": "BRL",
    "c$": "CAD",
    "ca$": "CAD",
    "a$": "AUD",
    "nz$": "NZD",
    "hk$": "HKD",
    "nt$": "TWD",
    "us$": "USD",
    "s$": "SGD",
    "mx$": "MXN",
    "s/": "PEN",
}


def of_country(country: str) -> str:
    """Return the currency of a country (ISO 3166-1 alpha-2): that of most of its prices.

    >>> of_country("GB"), of_country("RU")
    ('GBP', 'RUB')
    """
    return _BY_COUNTRY.get(country, "USD")


def step(currency: str) -> int:
    """Return the minor units in one unit of a currency.

    >>> step("JPY"), step("GBP"), step("KWD")
    (1, 100, 1000)
    """
    return int(10 ** DIGITS[currency])


def minor_units(currency: str) -> str:
    """Return what the minor units of a currency are called in errors.

    >>> minor_units("RUB"), minor_units("GBP")
    ('kopecks', 'minor units of GBP')
    """
    return "kopecks" if currency == RUB else f"minor units of {currency}"


def plain(amount: int, currency: str) -> str:
    """Return an amount for programs, with a point and all digits of the currency.

    >>> plain(1250, "JPY"), plain(1250, "GBP"), plain(1250, "KWD")
    ('1250', '12.50', '1.250')
    """
    return f"{Decimal(amount).scaleb(-DIGITS[currency]):f}"


def cell(amount: int, currency: str) -> float:
    """Return an amount in units of the currency for a spreadsheet.

    >>> cell(1250, "JPY"), cell(1200, "GBP")
    (1250, 12.0)
    """
    units = step(currency)
    return amount if units == 1 else amount / units


def major_units(amount: int, currency: str) -> float:
    """Return an amount in units of the currency, as an int if it is whole.

    >>> major_units(1250, "GBP"), major_units(1200, "GBP")
    (12.5, 12)
    """
    units = step(currency)
    return amount / units if amount % units else amount // units


@cache
def names_of(currency: str) -> frozenset[str]:
    """Return the code and the signs of a currency in lower case, as people write them.

    >>> sorted(names_of("GBP"))
    ['gbp', '£']
    """
    signs = (sign for sign, codes in _SIGNS.items() if currency in codes.split())
    return frozenset({currency.lower(), *signs})
