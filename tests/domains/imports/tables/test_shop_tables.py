"""Tables of shops and accounting programs, each with the headers of its own export."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chalicelib.domains.imports.rules.tables.product_table import Table, read, report
from chalicelib.domains.imports.rules.tables.recognition import PRODUCTS, role_of
from chalicelib.domains.imports.rules.tables.shops import OTHER, SHOPS
from chalicelib.domains.imports.rules.tables.table_errors import TableError
from tests.support.effort import examples

PHOTO = "https://shop.example/1.jpg"


def table_of(text: str, encoding: str = "utf-8") -> Table:
    return read(text.strip().encode(encoding), "rubles")


def by_sku(table: Table) -> dict[str, dict[str, Any]]:
    return {row.sku: dict(row.item) for row in table.rows if row.fault is None}


def notes_of(table: Table, sku: str) -> str:
    row = next(row for row in table.rows if row.sku == sku)
    return "; ".join(note.sentence for note in row.notes)


def faults_of(table: Table) -> dict[int, str]:
    return {row.number: row.fault.sentence for row in table.rows if row.fault is not None}


def codes_of(table: Table) -> list[str]:
    return [note.code for note in table.notes]


WOOCOMMERCE = f"""
ID,Type,SKU,Name,Published,"Is featured?","Visibility in catalog","Short description",Description,\
"Date sale price starts","Date sale price ends","Tax status","In stock?",Stock,\
"Backorders allowed?","Weight (kg)","Sale price","Regular price",Categories,Tags,Images,Parent,\
"Attribute 1 name","Attribute 1 value(s)","GTIN, UPC, EAN, or ISBN"
44,variable,tee,Tee,1,0,visible,Short.,"<p>Soft &amp; warm.</p>\\nWashable.",,,taxable,1,,0,.5,,,\
"Clothing, Clothing > Tees, Sale",,"{PHOTO}, https://shop.example/2,3.jpg",,Color,"Red, Blue",
45,variation,tee-red,"Tee - Red",1,,visible,,,,,taxable,1,,0,,,20,,,,tee,Color,Red,4006381333931
46,variation,,Tee,1,,visible,,,,,taxable,1,7,0,,15,20,,,,id:44,Color,Blue,4006381333932
47,simple,cap,Cap,1,1,hidden,,,2017-01-01,2030-01-01,taxable,0,,0,.1,16,18.5,Caps,new,,,Color,Red,
48,"simple, virtual",gift,Gift,0,0,visible,,,,,taxable,1,3,notify,,,30,,,,,,,
49,grouped,set,Set,1,0,visible,,,,,taxable,1,,0,,,,,,,,,,
"""


class TestWooCommerce:
    @pytest.fixture
    def table(self) -> Table:
        return table_of(WOOCOMMERCE)

    def test_each_variation_and_simple_product_arrives(self, table: Table) -> None:
        assert table.shop == "WooCommerce"
        assert [row.number for row in table.rows] == [3, 4, 5, 6, 7]
        assert set(by_sku(table)) == {"tee-red", "tee-Blue", "cap", "gift"}
        assert "consists of others" in faults_of(table)[7]

    def test_a_variation_has_what_its_parent_says(self, table: Table) -> None:
        red = by_sku(table)["tee-red"]
        assert red == {
            "sku": "tee-red",
            "name": "Tee - Red",
            "price": 2000,
            "description": "Short.\n\nSoft & warm.\n\nWashable.",
            "stock": None,
            "category": "Clothing / Tees",
            "images": [{"url": PHOTO}, {"url": "https://shop.example/2,3.jpg"}],
            "barcode": "4006381333931",
            "status": "active",
        }
        assert by_sku(table)["tee-Blue"]["name"] == "Tee / Blue"

    def test_a_sale_price_without_dates_is_the_price_and_is_noted(self, table: Table) -> None:
        assert by_sku(table)["tee-Blue"]["price"] == 1500
        assert "20 the regular one is left out" in notes_of(table, "tee-Blue")
        assert by_sku(table)["cap"]["price"] == 1850
        assert "2017-01-01" in notes_of(table, "cap")

    def test_stock_follows_the_flags_of_the_shop(self, table: Table) -> None:
        stocks = {sku: item["stock"] for sku, item in by_sku(table).items()}
        assert stocks == {"tee-red": None, "tee-Blue": 7, "cap": 0, "gift": None}
        assert "stock: 3 left out" in notes_of(table, "gift")

    def test_hidden_and_unpublished_products_are_inactive(self, table: Table) -> None:
        statuses = {sku: item["status"] for sku, item in by_sku(table).items()}
        assert statuses["cap"] == statuses["gift"] == "inactive"

    def test_a_wrong_check_digit_leaves_out_only_the_barcode(self, table: Table) -> None:
        assert "barcode" not in by_sku(table)["tee-Blue"]
        assert "barcode: left out" in notes_of(table, "tee-Blue")

    def test_columns_that_do_not_arrive_are_named(self, table: Table) -> None:
        assert table.ignored == [
            *("ID", "Is featured?", "Tax status", "Weight (kg)", "Tags", "Attribute 1 name"),
        ]
        assert table.partly_read == {"Attribute 1 value(s)": 2}
        assert "Sale left out" in notes_of(table, "tee-red")

    def test_russian_headers_are_read_alike(self) -> None:
        table = table_of(
            'ID,Тип,Артикул,Имя,Опубликован,"Видимость в каталоге",Описание,Наличие,Запасы,'
            '"Возможен ли предзаказ?","Акционная цена","Базовая цена",Категории,Изображения,'
            'Родительский,"Значения атрибутов 1"\n'
            f'1,variable,V,Ваза,1,visible,Стекло,1,,0,,,"Дом > Вазы",{PHOTO},,"Белый, Синий"\n'
            '2,variation,V-1,Ваза,1,visible,,1,3,0,"1990,5",2500,,,V,Белый\n'
        )
        assert by_sku(table)["V-1"] == {
            "sku": "V-1",
            "name": "Ваза / Белый",
            "price": 199_050,
            "description": "Стекло",
            "stock": 3,
            "category": "Дом / Вазы",
            "images": [{"url": PHOTO}],
            "status": "active",
        }


SHOPIFY_OLD = f"""
Handle,Title,Body (HTML),Vendor,Type,Published,Option1 Name,Option1 Value,Variant SKU,\
Variant Inventory Tracker,Variant Inventory Qty,Variant Inventory Policy,Variant Price,\
Variant Barcode,Image Src,Status
shirt,Shirt,,Acme,Shirts,TRUE,Size,Small,S-1,,0,deny,25,'4006381333931,{PHOTO},active
shirt,,,,,,,Medium,S-2,shopify,0,deny,19.99,,,
shirt,,,,,,,Large,S-3,shopify,4,continue,19.99,,,
shirt,,,,,,,X,,shopify,,deny,19.99,,,
"""
SHOPIFY_NEW = f"""
Title,URL handle,Description,Vendor,Type,Published on online store,Status,SKU,Barcode,\
Option1 name,Option1 value,Price,Compare-at price,Inventory tracker,Inventory quantity,\
Continue selling when out of stock,Product image URL,Variant image URL
Shirt,shirt,,Acme,Shirts,TRUE,Active,S-1,4006381333931,Size,Small,25,,,0,DENY,{PHOTO},
,shirt,,,,,,S-2,,,Medium,19.99,24.99,shopify,0,DENY,,
,shirt,,,,,,S-3,,,Large,19.99,,shopify,4,CONTINUE,,
,shirt,,,,,,,,,X,19.99,,shopify,,DENY,,
"""


@pytest.mark.parametrize("text", [SHOPIFY_OLD, SHOPIFY_NEW], ids=["old headers", "new headers"])
def test_shopify_sells_without_a_limit_what_it_does_not_count(text: str) -> None:
    table = table_of(text)
    products = by_sku(table)
    assert table.shop == "Shopify"
    assert {sku: item.get("stock", "unknown") for sku, item in products.items()} == {
        "S-1": None,
        "S-2": 0,
        "S-3": None,
        "shirt-X": "unknown",
    }
    assert products["S-1"] | {"stock": 0} == {
        "sku": "S-1",
        "name": "Shirt / Small",
        "price": 2500,
        "stock": 0,
        "barcode": "4006381333931",
        "category": "Shirts",
        "images": [{"url": PHOTO}],
        "status": "active",
    }
    assert "stock: 4 left out" in notes_of(table, "S-3")
    assert "Vendor" in table.ignored


INSALES = f"""
Категория\tПодкатегория 1\tID товара\tНазвание товара или услуги\tКраткое описание\t\
Полное описание\tВидимость на витрине\tРазмещение на сайте\tВалюта склада\tНДС\tИзображения\t\
ID варианта\tАртикул\tШтрих-код\tСвойство: Размер\tЦена продажи\tСтарая цена\tОстаток\tВес
Одежда\tПлатья\t101\tПлатье\tЛён\t<p>Лёгкое</p>\tвыставлен\tКаталог\tRUR\tБез НДС\t\
{PHOTO} https://shop.example/2.jpg\t9001\tP-S\t4006381333931\tS\t2 990,00\t3 500,00\t4\t0,3
Одежда\tПлатья\t101\tПлатье\tЛён\t<p>Лёгкое</p>\tвыставлен\tКаталог\tRUR\tБез НДС\t\
{PHOTO}\t9002\tP-M\t\tM\t2 990,00\t\t0\t0,3
Обувь\t\t102\tКеды\t\t\tскрыт\t\tUSD\t\t\t9003\t\t\t\t20\t\t\t
"""


def test_insales_has_levels_of_categories_and_properties_of_variants() -> None:
    table = table_of(INSALES, "utf-16")
    assert table.shop == "InSales"
    assert by_sku(table)["P-S"] == {
        "sku": "P-S",
        "name": "Платье / S",
        "price": 299_000,
        "description": "Лён\n\nЛёгкое",
        "stock": 4,
        "barcode": "4006381333931",
        "category": "Одежда / Платья",
        "images": [{"url": PHOTO}, {"url": "https://shop.example/2.jpg"}],
        "status": "active",
    }
    assert by_sku(table)["P-M"]["stock"] == 0
    assert "expected rubles, received USD" in faults_of(table)[4]
    assert table.ignored == ["Размещение на сайте", "НДС", "ID варианта", "Старая цена", "Вес"]


def test_opencart_has_ids_of_categories_and_paths_of_images_which_are_named() -> None:
    table = table_of(
        "product_id,name(ru-ru),name(en-gb),categories,sku,ean,quantity,model,image_name,price,"
        "status,description(ru-ru),subtract\n"
        '28,Телефон,Phone,"20,24",,,939,M1,catalog/a.jpg,100.0000,true,&lt;p&gt;HD&lt;/p&gt;,true\n'
        f"29,Palm,,20,PALM,,0,M2,{PHOTO},279.9900,false,,false\n"
    )
    assert table.shop == "OpenCart"
    assert by_sku(table)["28"] == {
        "sku": "28",
        "name": "Телефон",
        "price": 10_000,
        "description": "HD",
        "stock": 939,
        "status": "active",
    }
    assert (by_sku(table)["PALM"]["stock"], by_sku(table)["PALM"]["status"]) == (None, "inactive")
    assert "catalog/a.jpg" in notes_of(table, "28")
    assert {"name(en-gb)", "categories", "model"} <= set(table.ignored)
    assert "category_numbers" in codes_of(table)


OZON = """
Артикул;Ozon Product ID;SKU;Barcode;Название товара;Бренд;Категория;\
Доступно к продаже по схеме FBO, шт.;Доступно к продаже по схеме FBS, шт.;\
Текущая цена с учетом скидки, ₽;Цена до скидки (перечеркнутая цена), ₽;Размер НДС, %
'п50;849;140;OZN140;Папка;Комус;Папки;7;{stock};850.00;1000.00;20
'п75;850;141;4006381333931;Папка 75;Комус;Папки;0;0;1 250,50;;20
"""


def test_ozon_names_its_own_sku_and_keeps_the_sellers() -> None:
    table = table_of(OZON.format(stock=4))
    assert table.shop == "Ozon"
    assert [(row.sku, row.item["price"], row.item["stock"]) for row in table.rows] == [
        ("п50", 85_000, 4),
        ("п75", 125_050, 0),
    ]
    assert "OZN140" in notes_of(table, "п50")
    assert {"SKU", "Доступно к продаже по схеме FBO, шт.", "Размер НДС, %"} <= set(table.ignored)


def test_goods_in_ozons_own_warehouse_do_not_become_sold_out() -> None:
    table = table_of(OZON.format(stock=0))
    assert all("stock" not in row.item for row in table.rows)
    assert "Доступно к продаже по схеме FBS, шт." in table.ignored
    assert "no_stock" in codes_of(table)


ONE_C = """
Прайс-лист на 28 ноября;;;;;
;;;;;
Код;Артикул;Номенклатура;Розничная;;Основной склад
;;;Цена;Ед.;Остаток
00-01;ЧЕР-1;Чай чёрный;1 250,00;шт;10,000
00-02;;Чай зелёный;980,50 руб.;шт;1 200,000
;;Посуда;;;
00-03;КР-7;Кружка;350;шт;-
Итого:;;;;;1 210,000
"""


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "cp1251", "cp866", "utf-16", "utf-16-le"]
)
def test_a_price_list_of_1c_has_two_rows_of_header_and_a_total(encoding: str) -> None:
    table = table_of(ONE_C, encoding)
    assert by_sku(table) == {
        "ЧЕР-1": {"sku": "ЧЕР-1", "name": "Чай чёрный", "price": 125_000, "stock": 10},
        "00-02": {"sku": "00-02", "name": "Чай зелёный", "price": 98_050, "stock": 1200},
        "КР-7": {"sku": "КР-7", "name": "Кружка", "price": 35_000, "stock": 0},
    }
    assert "10,000 is read as 10" in notes_of(table, "ЧЕР-1")
    assert "- is read as 0" in notes_of(table, "КР-7")
    assert faults_of(table) == {7: "sku: is required"}
    assert [(note.code, note.facts) for note in table.notes] == [("total", {"row": "9"})]
    assert (table.ignored, table.partly_read) == (["Ед."], {"Код": 2})


def test_utf_16_without_a_mark_is_known_by_few_ascii_letters() -> None:
    (row,) = table_of("sku;описание\nА;" + "Чайникмедный" * 60, "utf-16-be").rows
    assert row.item["description"].startswith("Чайник")


def test_characteristics_of_1c_are_products_of_their_own() -> None:
    table = table_of(
        "Артикул;Номенклатура;Характеристика;Цена\nT-1;Футболка;S;100\nT-1;Футболка;M;100\n"
    )
    assert {sku: item["name"] for sku, item in by_sku(table).items()} == {
        "T-1-S": "Футболка / S",
        "T-1-M": "Футболка / M",
    }


def test_a_western_table_keeps_its_accents() -> None:
    table = table_of("sku;name;price\nA;Café crème;3\nB;Piña colada;4", "cp1252")
    assert [row.item["name"] for row in table.rows] == ["Café crème", "Piña colada"]


def test_several_prices_of_1c_are_refused_rather_than_guessed() -> None:
    with pytest.raises(ValueError, match="Several columns contain price"):
        table_of("Артикул;Номенклатура;Опт;Розничная\n;;Цена;Цена\nA;a;1;2\n")


def test_wildberries_has_a_row_for_each_size() -> None:
    table = table_of(
        "Группа;Артикул продавца;Артикул WB;Наименование;Категория продавца;Бренд;Фото;Баркод;"
        "Размер;Цена\n"
        f"1;A-1;12;Майка;Майки;Мила;{PHOTO};2000000000015;S;1 290\n"
        f"1;A-1;12;Майка;Майки;Мила;{PHOTO};2000000000022;M;1 290\n"
        "2;A-2;13;Сумка;Сумки;Мила;;;0;990\n"
    )
    assert table.shop == "Wildberries"
    assert {sku: item["name"] for sku, item in by_sku(table).items()} == {
        "A-1-S": "Майка / S",
        "A-1-M": "Майка / M",
        "A-2": "Сумка",
    }
    assert table.ignored == ["Группа", "Артикул WB", "Бренд"]


def test_tilda_has_editions_below_their_product() -> None:
    table = table_of(
        '"Tilda UID";Brand;SKU;Category;Title;Description;Text;Photo;Price;Quantity;"Price Old";'
        'Editions;"External ID";"Parent UID"\n'
        f'987;B;;"Свечи;Дом";Свеча;Соевая;"<p>40 часов</p>";{PHOTO};;;;;e1;\n'
        '988;B;SV-R;;Свеча;;;;890.0000;5;990;"Цвет:Красный;Объём:200 мл";e2;987\n'
        "990;;OT;Открытки;Открытка;;;;150;0;;;e3;\n"
    )
    assert table.shop == "Tilda"
    assert by_sku(table)["SV-R"] == {
        "sku": "SV-R",
        "name": "Свеча / Красный / 200 мл",
        "price": 89_000,
        "description": "Соевая\n\n40 часов",
        "stock": 5,
        "category": "Свечи",
        "images": [{"url": PHOTO}],
    }
    assert by_sku(table)["OT"]["stock"] == 0
    assert {"Brand", "Price Old", "Tilda UID"} <= set(table.ignored)


def test_ecwid_has_rows_of_options_and_variations() -> None:
    table = table_of(
        "type,product_internal_id,product_sku,product_name,product_price,"
        "product_is_inventory_tracked,product_quantity,product_is_available,"
        "product_media_main_image_url,product_category_1,product_option_name,"
        "product_variation_sku,product_variation_option_Size\n"
        f"product,1,TEE,Tee,20,true,9,true,{PHOTO},Clothing / Tees,,,\n"
        "product_option,1,TEE,,,,,,,,Size,,\n"
        "product_variation,1,TEE,,18,true,5,,,,,TEE-S,S\n"
        "product_variation,1,TEE,,,true,4,,,,,,M\n"
        "product,2,MUG,Mug,9.5,false,0,false,,,,,\n"
    )
    assert table.shop == "Ecwid"
    assert {
        sku: (item["name"], item["price"], item["stock"], item["status"])
        for sku, item in by_sku(table).items()
    } == {
        "TEE-S": ("Tee / S", 1800, 5, "active"),
        "TEE-M": ("Tee / M", 2000, 4, "active"),
        "MUG": ("Mug", 950, None, "inactive"),
    }


def test_bigcommerce_has_variants_below_their_product() -> None:
    table = table_of(
        "Item Type,Product ID,Product Name,Product Code/SKU,Price,Sale Price,Product Visible?,"
        "Track Inventory,Current Stock Level,Category,Product Image File - 1\n"
        f"Product,55,Blue Tee,TEE,20.00,0.00,Y,by option,0,Shop All/Tees;Sale,{PHOTO}\n"
        "  SKU,1,[S]Size=Small,TEE-S,,,,,5,,\n"
        "Rule,,,TEE,[ADD]2,,,,,,\n"
        "Product,56,Poster,,10,8.50,N,none,0,Home,\n"
    )
    assert table.shop == "BigCommerce"
    small, poster = by_sku(table)["TEE-S"], by_sku(table)["56"]
    assert (small["name"], small["price"], small["stock"]) == ("Blue Tee / Small", 2000, 5)
    assert small["images"] == [{"url": PHOTO}]
    assert (poster["price"], poster["stock"], poster["status"]) == (850, None, "inactive")


def test_a_variant_with_a_price_of_its_own_has_no_sale_price_of_its_product() -> None:
    table = table_of(
        "Item Type,Product ID,Product Name,Product Code/SKU,Price,Sale Price\n"
        "Product,55,Blue Tee,TEE,20.00,15\n"
        "SKU,1,[S]Size=S,TEE-S,,\nSKU,2,[S]Size=L,TEE-L,22,\nSKU,3,[S]Size=M,TEE-M,22,30\n"
    )
    assert {sku: item["price"] for sku, item in by_sku(table).items()} == {
        "TEE-S": 1500,
        "TEE-L": 2200,
        "TEE-M": 2200,
    }
    assert "not below 22" in notes_of(table, "TEE-M")


def test_moysklad_has_modifications_of_a_product() -> None:
    table = table_of(
        "Группы;Тип;Код;Наименование;Внешний код;Артикул;Единица измерения;Цена: Цена продажи;"
        "Валюта (Цена продажи);Закупочная цена;Валюта (Закупочная цена);Штрихкод EAN13;Описание;"
        "Остаток;Код товара модификации;Характеристика:Размер\n"
        "Одежда/Майки;Товар;K1;Майка;x1;;шт;1320,00;руб;880,00;руб;;Хлопок;;;\n"
        ";Модификация;K2;Майка;x2;M-S;шт;1320,00;руб;;;2000000000015;;3;K1;S\n"
        "Чай;Товар;K3;Чай;x3;T-1;шт;99;б. руб;;;;;;;\n"
    )
    assert table.shop == "MoySklad"
    assert by_sku(table)["M-S"] == {
        "sku": "M-S",
        "name": "Майка / S",
        "price": 132_000,
        "description": "Хлопок",
        "stock": 3,
        "barcode": "2000000000015",
        "category": "Одежда / Майки",
    }
    assert "received б. руб" in faults_of(table)[4]
    assert {"Закупочная цена", "Единица измерения", "Внешний код"} <= set(table.ignored)


def test_bitrix_has_groups_as_levels() -> None:
    table = table_of(
        "IE_XML_ID;IE_NAME;IE_ACTIVE;IE_PREVIEW_TEXT;IE_DETAIL_TEXT;IE_DETAIL_PICTURE;IC_GROUP0;"
        "IC_GROUP1;CV_PRICE_1;CV_CURRENCY_1;CP_QUANTITY;IP_PROP12\n"
        f"77;Чайник;Y;Медный;<p>2 л</p>;{PHOTO};Кухня;Чайники;4500.00;RUB;2;x\n"
    )
    assert table.shop == "1C-Bitrix"
    assert by_sku(table)["77"] == {
        "sku": "77",
        "name": "Чайник",
        "price": 450_000,
        "description": "Медный\n\n2 л",
        "stock": 2,
        "category": "Кухня / Чайники",
        "images": [{"url": PHOTO}],
        "status": "active",
    }
    assert table.ignored == ["IP_PROP12"]


def test_a_corrected_report_of_a_shops_table_can_be_imported() -> None:
    table = table_of(WOOCOMMERCE.replace(",18.5,Caps,", ",dear,Media > CD/DVD,"))
    (row,) = [row for row in table.rows if row.sku == "cap"]
    raw = report(table, [(row, faults_of(table)[row.number])])
    corrected = read(raw.replace(b"dear", b"18.5"), "rubles")
    assert by_sku(corrected) == {
        "cap": {
            "sku": "cap",
            "name": "Cap",
            "price": 1850,
            "stock": 0,
            "category": r"Media / CD\/DVD",
            "status": "inactive",
        }
    }


def test_a_table_of_too_many_columns_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="2,001 columns"):
        table_of("sku," + "a," * 1999 + "b\nA\n")


def test_prestashop_says_that_its_prices_may_be_without_tax() -> None:
    table = table_of(
        "Product ID;Active (0/1);Name *;Categories (x,y,z...);Price tax excluded;On sale (0/1);"
        "Discount percent;Reference #;EAN13;Quantity;Summary;Description;Image URLs (x,y,z...)\n"
        "1;1;iPod;iPods,Audio;100;1;5.5;RP-1;1234567890123;160;<p>New.</p>;<p>Old.</p>;"
        f"{PHOTO},https://shop.example/2.jpg\n"
    )
    assert table.shop == "PrestaShop"
    assert by_sku(table)["RP-1"] == {
        "sku": "RP-1",
        "name": "iPod",
        "price": 10_000,
        "description": "New.\n\nOld.",
        "stock": 160,
        "category": "iPods",
        "images": [{"url": PHOTO}, {"url": "https://shop.example/2.jpg"}],
        "status": "active",
    }
    (note,) = table.notes
    assert (note.code, note.facts["text"]) == ("net", "Price tax excluded")
    assert {"On sale (0/1)", "Discount percent"} <= set(table.ignored)
    assert "barcode: left out" in notes_of(table, "RP-1")


def test_magento_has_translations_and_sets_that_are_left_out() -> None:
    table = table_of(
        "sku,store_view_code,product_type,categories,name,description,product_online,price,"
        "special_price,special_price_from_date,qty,is_in_stock,manage_stock,base_image\n"
        '24-W,,simple,"Default Category/Gear,Default Category/Gear/Fit",Strap,<b>Good</b>,1,14,'
        ",,100,1,1,/l/u.jpg\n"
        "24-W,fr,simple,,Sangle,,,,,,,,,\n"
        "24-X,,simple,Default Category/Gear,Strap 8,,2,17,15,2015-10-25,0,0,1,\n"
        "24-G,,grouped,Default Category/Gear,Set,,1,,,,0,1,1,\n"
    )
    assert table.shop == "Magento"
    assert by_sku(table)["24-W"]["category"] == "Gear / Fit"
    assert by_sku(table)["24-X"]["price"] == 1700
    assert by_sku(table)["24-X"]["status"] == "inactive"
    assert list(faults_of(table)) == [5]
    assert [(note.code, note.facts["count"]) for note in table.notes] == [("translations", "1")]


def test_square_adds_the_stock_of_all_places() -> None:
    table = table_of(
        "Token,Item Name,Variation Name,SKU,Category,GTIN,Price,Current Quantity Main St,"
        "Current Quantity Airport\n"
        "T1,Candle,Small,C-S,Home,00012345678905,12.00,10,4\n"
        "T2,Candle,Large,,Home,,18,,\n"
        "T3,Mug,Regular,M,Home,,variable,9,\n"
    )
    assert table.shop == "Square"
    assert by_sku(table)["C-S"]["stock"] == 14
    assert "stock" not in by_sku(table)["T2"]
    assert "sum of 2 places" in notes_of(table, "C-S")
    assert list(faults_of(table)) == [4]


def test_squarespace_has_sale_prices_that_may_be_off() -> None:
    table = table_of(
        "Variant ID [Non Editable],Title,SKU,Option Name 1,Option Value 1,Price,Sale Price,"
        "On Sale,Stock,Categories,Visible,Hosted Image URLs\n"
        f'V1,Tee,SQ-S,Size,S,20.00,15.00,No,35,"/tees",Yes,{PHOTO} https://shop.example/2.jpg\n'
        "V2,,SQ-M,,M,20.00,15.00,Yes,Unlimited,,,\n"
    )
    assert table.shop == "Squarespace"
    first, second = by_sku(table)["SQ-S"], by_sku(table)["SQ-M"]
    assert (first["price"], first["stock"], first["name"]) == (2000, 35, "Tee / S")
    assert (second["price"], second["stock"], second["name"]) == (1500, None, "Tee / M")
    assert len(second["images"]) == 2


def test_wix_adds_the_surcharge_of_a_variant_to_the_price() -> None:
    table = table_of(
        "handleId,fieldType,name,productImageUrl,collection,sku,price,surcharge,visible,"
        "discountValue,inventory,productOptionDescription1\n"
        f"tee,Product,Tee,{PHOTO};https://shop.example/2.jpg,Tees,TEE,20,,true,10,InStock,S;L\n"
        "tee,Variant,,,,TEE-L,,4,,,OutOfStock,L\n"
    )
    assert table.shop == "Wix"
    item = by_sku(table)["TEE-L"]
    assert (item["price"], item["stock"], item["name"]) == (2400, 0, "Tee / L")
    assert "discountValue" in table.ignored


def test_etsy_and_cs_cart_are_read() -> None:
    etsy = table_of(
        "TITLE,DESCRIPTION,PRICE,CURRENCY_CODE,QUANTITY,TAGS,IMAGE1,IMAGE2,SKU\n"
        f'Green Ring,"Line one\nLine two",6.15,RUB,3,tag,{PHOTO},https://shop.example/2.jpg,\n'
        "Mug,A mug,24.00,USD,7,,,,MUG\n"
    )
    assert etsy.shop == "Etsy"
    assert by_sku(etsy)["green-ring"]["description"] == "Line one\nLine two"
    assert len(by_sku(etsy)["green-ring"]["images"]) == 2
    assert "received USD" in faults_of(etsy)[3]
    cart = table_of(
        "Product code;Language;Product id;Category;Price;Status;Quantity;Product name\n"
        "C-1;ru;12;Одежда///Мужская;1499.00;A;15;Рубашка\n"
        "C-1;en;12;Clothes///Men;1499.00;A;15;Shirt\n"
        "C-2;ru;13;Одежда;990.00;H;0;Майка\n"
    )
    assert cart.shop == "CS-Cart"
    assert by_sku(cart)["C-1"]["name"] == "Рубашка"
    assert by_sku(cart)["C-1"]["category"] == "Одежда / Мужская"
    assert by_sku(cart)["C-2"]["status"] == "inactive"


def test_a_variation_without_its_parent_has_no_invented_name() -> None:
    header, *rows = WOOCOMMERCE.strip().splitlines()
    orphans = [row.replace('"Tee - Red"', "") for row in rows if "variation" in row]
    table = table_of("\n".join([header, *orphans]).replace(",Tee,", ",,"))
    assert [row.item.get("name") for row in table.rows] == [None, None]


def test_prices_with_the_sign_of_the_ruble_are_compared() -> None:
    text = WOOCOMMERCE.replace(",15,20,,", ',"15,50 ₽","1 200 руб.",,')
    assert by_sku(table_of(text))["tee-Blue"]["price"] == 1550


def test_text_in_angle_brackets_is_no_html() -> None:
    table = table_of('sku;description\nA;Sizes <M and >L\nB;"<p>One</p><p>Two &amp; 3</p>"')
    assert by_sku(table)["A"]["description"] == "Sizes <M and >L"
    assert by_sku(table)["B"]["description"] == "One\n\nTwo & 3"


def test_a_feed_for_google_as_a_table_is_read() -> None:
    table = table_of(
        "id\ttitle\tdescription\tlink\tcondition\tprice\tavailability\timage_link\tgtin\tbrand\t"
        "product_type\n"
        f"A1\tTea\tBlack\thttps://x.example/a\tnew\t150.00 RUB\tin_stock\t{PHOTO}\t\tMill\t"
        "Tea > Black\n"
        "A2\tCup\t\thttps://x.example/b\tnew\t15.00 USD\tout_of_stock\t\t\t\t\n"
    )
    assert table.shop == "Google Merchant Center"
    assert by_sku(table)["A1"] == {
        "sku": "A1",
        "name": "Tea",
        "price": 15_000,
        "description": "Black",
        "stock": None,
        "category": "Tea / Black",
        "images": [{"url": PHOTO}],
    }
    assert "15.00 USD" in faults_of(table)[3]
    assert table.ignored == ["link", "condition", "brand"]


def test_a_table_of_a_few_columns_of_woocommerce_is_recognized() -> None:
    table = table_of("SKU,Regular price,Sale price,Stock\nA,20,,5")
    assert table.shop == "WooCommerce"
    assert by_sku(table) == {"A": {"sku": "A", "price": 2000, "stock": 5}}


def test_a_slash_in_the_name_of_a_category_is_not_a_level() -> None:
    text = WOOCOMMERCE.replace('"Clothing, Clothing > Tees, Sale"', "Media > CD/DVD")
    assert by_sku(table_of(text))["tee-red"]["category"] == r"Media / CD\/DVD"


def test_more_images_than_a_product_has_are_noted() -> None:
    urls = "|".join(f"https://shop.example/{n}.jpg" for n in range(12))
    table = table_of(f"sku;images\nA;{urls}")
    assert len(by_sku(table)["A"]["images"]) == 10
    assert "2 of 12 left out" in notes_of(table, "A")


@pytest.mark.parametrize(
    ("cell", "barcode", "note"),
    [
        ("4006381333931", "4006381333931", ""),
        ("36000291452", "036000291452", ""),
        ("4006381333932", None, "barcode: left out"),
        ("4,00638E+12", None, "all digits"),
        ("none", None, "barcode: left out"),
        ("4006381333931, 036000291452", "4006381333931", "036000291452 left out"),
    ],
)
def test_no_barcode_refuses_its_product(cell: str, barcode: str | None, note: str) -> None:
    table = table_of(f'sku;name;price;штрихкод\nA;a;1;"{cell}"')
    assert faults_of(table) == {}
    assert by_sku(table)["A"].get("barcode") == barcode
    assert note in notes_of(table, "A")


def test_columns_without_a_header_are_named_by_their_letters() -> None:
    table = table_of("sku;;name;\nA;lost;a;\nB;;b;x")
    assert table.ignored == ["column B", "column D"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            (
                "handle,fieldType,name,price,surcharge,productOptionDescription1\n"
                "t,Product,Tee,20,,\nt,Variant,,,much,L\n"
            ),
            "price: expected a number",
        ),
        ("SKU,Name,Published,Regular price\nA,a,maybe,5\n", "status: expected yes or no"),
        (
            (
                "Item Name,Variation Name,SKU,Price,Current Quantity A,Current Quantity B\n"
                "a,Regular,A,5,12,a few\n"
            ),
            "stock: expected a number",
        ),
    ],
)
def test_a_cell_that_cannot_be_read_refuses_its_row(text: str, reason: str) -> None:
    (fault,) = faults_of(table_of(text)).values()
    assert fault.startswith(reason)


def test_a_cell_without_its_closing_quotes_is_named() -> None:
    with pytest.raises(TableError, match="no CSV"):
        table_of('sku;name\nA;"' + "x" * 200_000)


def test_columns_of_one_name_are_named_once() -> None:
    table = table_of("sku;Скидка;Скидка;name\nA;5;;a\nB;;7;b")
    assert table.ignored == ["Скидка"]


STRUCTURE = frozenset(
    {
        *("kind", "handle", "parent", "view"),
        *("tracker", "oversold", "in stock", "on sale", "surcharge"),
    }
)
"""Roles whose cells say how to read the others."""


UNKNOWN = ("цвет", "Vendor", "", "Tax 2", "Meta: _x", "Вес, кг")


def header_of(mark: frozenset[str], others: list[str]) -> list[str]:
    """Return a header with the columns that name a shop, and others of its columns."""
    names = [*mark, *(name for name in others if name not in mark)]
    return [name.replace("#", "1").replace("*", "x") for name in names]


@examples(120)
@given(data=st.data())
def test_no_filled_column_is_neither_read_nor_named(data: st.DataObject) -> None:
    shop = data.draw(st.sampled_from([OTHER, *SHOPS]))
    mark = data.draw(st.sampled_from(shop.marks or [frozenset({"sku"})]))
    others = data.draw(
        st.lists(st.sampled_from([*shop.columns, *UNKNOWN]), unique=True, min_size=5)
    )
    names = header_of(mark, others)
    at = data.draw(st.integers(0, len(names) - 1))
    is_image = role_of(PRODUCTS.shop_of(names), names[at]) in {"images", "gallery"}
    tokens = ["https://z.example/q.png", "q.png"] if is_image else ["zq", "77.5"]
    token = data.draw(st.sampled_from(tokens))
    filling = {"sku": "A-1", "id": "9", "handle": "h", "name": "Item", "price": "5", "kind": ""}
    cells = [filling.get(str(role_of(shop, name)), "") for name in names]
    cells[at] = token
    out = io.StringIO()
    csv.writer(out).writerows([names, cells])
    try:
        table = read(out.getvalue().encode(), "rubles")
    except TableError:
        assume(shop is not OTHER)  # which refuses several columns of one meaning
        raise
    assert table.shop == PRODUCTS.shop_of(names).name
    if role_of(PRODUCTS.shop_of(names), names[at]) in STRUCTURE:
        return
    shown = names[at] or f"column {chr(ord('A') + at)}"
    row = table.rows[0]
    told = f"{dict(row.item)} {row.fault} {row.notes} {table.notes}"
    is_read = token in told or "7750" in told
    assert is_read or shown in {*table.ignored, *table.partly_read}, (names, cells)


SEPARATORS = st.sampled_from(["", " ", "\u00a0", "\u202f", "'"])


@examples(60)
@given(
    whole=st.integers(1, 9_999_999),
    kopecks=st.integers(0, 99),
    separator=SEPARATORS,
    point=st.sampled_from([",", "."]),
    sign=st.sampled_from(["", " ₽", " руб.", "р.", " RUB"]),
    stock=st.integers(1, 99_999),
)
def test_no_number_becomes_zero_or_another_number(
    whole: int, kopecks: int, separator: str, point: str, sign: str, stock: int
) -> None:
    groups = f"{whole:,}".replace(",", separator)
    count = f"{stock:,}".replace(",", separator)
    price = f"{groups}{point}{kopecks:02}{sign}"
    (row,) = table_of(f'sku;цена;остаток\nA;"{price}";"{count}"').rows
    assert row.fault is None
    assert (row.item["price"], row.item["stock"]) == (whole * 100 + kopecks, stock)


@examples(60)
@given(text=st.from_regex(r"[0-9]{1,4}([.,][0-9]{1,4})?", fullmatch=True))
def test_a_number_of_any_form_is_itself_or_refused_or_noted(text: str) -> None:
    (row,) = table_of(f'sku;цена;остаток\nA;"{text}"').rows
    expected = Decimal(text.replace(",", "."))
    if row.fault is None:
        assert Decimal(row.item["price"]) == expected * 100
    (row,) = table_of(f'sku;остаток\nA;"{text}"').rows
    if row.fault is None:
        assert row.item["stock"] == expected
